package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// patient is an engine with a given health.
type patient struct {
	kv.Engine
	health atomic.Pointer[kv.Health]
}

func (p *patient) Health() kv.Health { return *p.health.Load() }

// /ready and /status show the state that the store reports.
func TestReadySaysWhatIsWrong(t *testing.T) {
	sick := &patient{Engine: memkv.New()}
	sick.health.Store(&kv.Health{})
	p := parts{doors: makeDoors, probes: probes, open: func(*Config) (backend, error) {
		eng, err := core.Open(context.Background(), sick, core.Options{})
		return &backing{storage: storage{sick}, eng: eng}, err
	}}
	s, err := start(Ephemeral(), p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	defer s.Stop(ctx)
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		res, err := http.Get("http://" + s.Addr(Admin) + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	for _, c := range []struct {
		health kv.Health
		code   int
		says   string
		status string
		hangs  bool
	}{
		{kv.Health{}, 200, "ready", `"well"`, false},
		{kv.Health{State: kv.Damaged, Reason: "a file is damaged"}, 503, "not ready: a file is damaged",
			`"damaged"`, false},
		{kv.Health{State: kv.Full, Reason: "the disk is full"}, 503, "not ready: the disk is full", `"full"`, false},
		{kv.Health{State: kv.ReadOnly}, 503, "not ready: the store is read-only", `"read-only"`, false},
		{kv.Health{State: kv.Stalled, Reason: "no answer"}, 503, "not ready: no answer", `"stalled"`, true},
		{kv.Health{}, 200, "ready", `"well"`, false},
	} {
		sick.health.Store(&c.health)
		if code, text := get("/ready"); code != c.code || !strings.HasPrefix(text, c.says) {
			t.Errorf("%+v: /ready says %d %s", c.health, code, text)
		}
		if _, text := get("/status"); !strings.Contains(text, c.status) || !strings.Contains(text, c.health.Reason) ||
			strings.Contains(text, `"ready": true`) != (c.code == 200) {
			t.Errorf("%+v: /status says %s", c.health, text)
		}
		if s.Hangs() != c.hangs {
			t.Errorf("%+v: hangs is %v", c.health, s.Hangs())
		}
	}
}
