package tableapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// While a shared store doesn't answer, a request ends with its deadline, and with a status after which SDKs repeat it.
// That is so too for a signature that names a stored policy, or a table: it isn't refused as wrong.
func TestRequestsEndWhileTheStoreIsSilent(t *testing.T) {
	store := &kvtest.Mute{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
	clk := clock.Fake(time.Date(2024, 3, 4, 5, 6, 7, 0, time.UTC))
	e, err := core.Open(t.Context(), store, core.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s := New(e, Options{Account: testAccount, Key: testKey, Auth: true, Clock: clk, Wall: clk})
	lite := func(resource string) map[string]string {
		return map[string]string{"x-ms-date": now,
			"Authorization": "SharedKeyLite localhost:" + signature(now+"\n/localhost/"+resource)}
	}
	if _, err := e.EnsureDatabase(t.Context(), Database); err != nil {
		t.Fatal(err)
	}
	spec := core.ContainerSpec{ID: "one", PartitionKey: core.PartitionKeyDef{Paths: []string{"/$pk"}}}
	if _, err := e.CreateContainer(t.Context(), Database, spec); err != nil {
		t.Fatal(err)
	}
	of := url.Values{"sv": {"2019-02-02"}, "tn": {"one"}, "sp": {"r"}, "se": {"2024-03-05T00:00:00Z"}}
	policy := url.Values{"sv": {"2019-02-02"}, "tn": {"one"}, "si": {"p"}}
	store.Now.Store(true)
	for _, x := range []struct {
		method, target string
		header         map[string]string
	}{
		{"GET", "/Tables", lite("Tables")},
		{"GET", "/Tables('one')", lite("Tables('one')")},
		{"DELETE", "/Tables('one')", lite("Tables('one')")},
		{"GET", "/one()", lite("one()")},
		{"GET", "/one(PartitionKey='a',RowKey='b')", lite("one(PartitionKey='a',RowKey='b')")},
		{"GET", "/one?comp=acl", lite("one?comp=acl")},
		{"GET", "/one()?" + sas(of), nil},
		{"GET", "/one()?" + sas(policy), nil},
	} {
		r := httptest.NewRequest(x.method, x.target, nil)
		r.RequestURI = x.target
		for k, v := range x.header {
			r.Header.Set(k, v)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		w, begun := httptest.NewRecorder(), time.Now()
		s.ServeHTTP(w, r.WithContext(ctx))
		cancel()
		if took := time.Since(begun); w.Code < http.StatusInternalServerError || took > 2*time.Second {
			t.Errorf("%s %s: %d %s after %v", x.method, x.target, w.Code, w.Header().Get("x-ms-error-code"), took)
		}
	}
	store.Now.Store(false)
}
