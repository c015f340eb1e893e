package server

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// While a shared store doesn't answer, /status ends soon, and says what it couldn't read. What it could read is there.
func TestStatusEndsWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &kvtest.Mute{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
		e, err := core.Open(t.Context(), store, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.EnsureDatabase(t.Context(), "db"); err != nil {
			t.Fatal(err)
		}
		s := &Server{log: quiet}
		b := &backing{eng: e}
		var well, silent Status
		b.describe(t.Context(), s, &well)
		if len(well.Unread) > 0 {
			t.Errorf("unread: %q", well.Unread)
		}
		store.Now.Store(true)
		begun := time.Now()
		b.describe(context.Background(), s, &silent)
		if took := time.Since(begun); took > statusTime {
			t.Errorf("it took %v", took)
		}
		if got := fmt.Sprint(silent.Unread); got != "[containers: The request took too long.]" || silent.Health == nil {
			t.Errorf("unread: %s", got)
		}
		store.Now.Store(false)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
