package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// half sets one container of a store back to the older format, as if its upgrade had been interrupted, and damages its
// item, so that the upgrade can't finish.
func half(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	e, err := pebblekv.Open(dir, pebblekv.Options{Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		t.Fatal(err)
	}
	var b kv.Batch
	snap := kvtest.Snapshot(t, e)
	it, err := snap.Iter([]byte{0}, []byte{0xff})
	if err != nil {
		t.Fatal(err)
	}
	gen := uint32(0) // of the container with the item
	for ok := it.First(); ok; ok = it.Next() {
		if slot, kind, ok := keys.ParseSlot(it.Key()); ok && kind == keys.KindItem {
			gen = slot.Gen
		}
	}
	for ok := it.First(); ok; ok = it.Next() {
		key, val := it.Key(), it.Value()
		if kind, _, _, meta := keys.ParseMeta(key); meta && kind == keys.MetaAccount {
			b.Put(key, []byte(strings.Replace(string(val), fmt.Sprintf(`,"format":%d`, kv.Format), "", 1)))
		}
		slot, kind, ok := keys.ParseSlot(key)
		switch {
		case !ok || slot.Gen != gen:
		case kind == keys.KindHead:
			old := append([]byte{1}, val[2:2+8*4]...) // a head of format 2
			b.Put(key, append(old, make([]byte, 4+8+4+64+1)...))
		case kind == keys.KindItem:
			b.Put(key, []byte{99})
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	_ = snap.Close()
	cm, err := e.Write(ctx, &b, nil)
	if err == nil {
		err = cm.Wait()
	}
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// /status shows the progress of a store's upgrade, and what prevents it.
func TestStatusOfAnUpgrade(t *testing.T) {
	data := t.TempDir()
	s := onDisk(t, data)
	for _, what := range [][2]string{{"dbs", `{"id":"d"}`},
		{"dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"]}}`},
		{"dbs/d/colls", `{"id":"other","partitionKey":{"paths":["/pk"]}}`}} {
		if code, _, _, _, text := s.ask(t, "POST", what[0], what[1]); code != http.StatusCreated {
			t.Fatal(code, text)
		}
	}
	s.create(t, "1")
	upgrade := func() *core.UpgradeStatus {
		var st Status
		_, text := get(t, http.DefaultClient, "http://"+s.Addr(Admin)+"/status")
		if err := json.Unmarshal([]byte(text), &st); err != nil {
			t.Fatal(err, text)
		}
		return st.Upgrade
	}
	if up := upgrade(); up != nil {
		t.Errorf("a store of the present format is being upgraded: %+v", up)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	half(t, StoreDir(data))
	s = onDisk(t, data)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		up := upgrade()
		if up != nil && up.Containers > 1 && up.Done == up.Containers-1 && up.Problem != "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("/status says %+v", up)
		}
	}
}
