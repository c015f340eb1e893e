package sqlapi

import (
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// Procedures that have lost a race hold the slot while they run. So nothing that a procedure asks for may wait for the
// slot: it would wait for the end of its own hold.
func TestProceduresDoNotWaitForThemselves(t *testing.T) {
	a := processOf(t, kvtest.NewShared(memkv.New(), 1), clock.Fake(testNow))
	a.srv.opt.Scripts = program(func(r *fakeRun) error {
		if _, err := r.do("queryDocuments", "", `{"query":"SELECT * FROM c"}`, ""); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond) // the others begin
		_, err := r.do("upsertDocument", "", `{"id":"x","pk":"a"}`, "")
		return err
	})
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`).is(201)
	a.addProgram("sprocs", "p", "")
	begun := time.Now()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { a.do("POST", execute, `[]`, key("a")).is(200) })
	}
	all.Wait()
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("eight procedures have taken %v", took)
	}
}
