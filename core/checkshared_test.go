package core_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A call of a check fails, each one in its turn, because other machines don't answer or have removed old versions. That
// is no damage: a check is done or fails, and a scrub tries again.
func TestFailedCallsAreNoDamage(t *testing.T) {
	for _, fault := range []error{kv.ErrUnavailable, kv.ErrSnapshotTooOld} {
		synctest.Test(t, func(t *testing.T) {
			shared := kvtest.NewShared(memkv.New(), 1)
			e, err := core.Open(bg, shared.Engine(), core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			c := newContainer(t, e, core.ContainerSpec{UniqueKeys: [][]string{{"/n"}}})
			for i := range 3 {
				put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p","n":%d}`, i, i))
			}
			checks, failed := 0, 0
			shared.Interrupt(fault, false, func() {}, func() {
				problems, err := e.Check(bg)
				if checks++; err != nil {
					failed++
				}
				if len(problems) > 0 {
					t.Errorf("%v: the check finds %q", fault, problems)
				}
			})
			shared.Interrupt(fault, false, func() {}, func() {
				if err := e.Scrub(bg); err != nil {
					t.Errorf("%v: a scrub has failed: %v", fault, err)
				}
			})
			if st := e.ScrubStatus(); st.Found > 0 {
				t.Errorf("%v: the scrub finds %q", fault, st.Problems)
			}
			if failed == 0 || failed == checks {
				t.Errorf("%v: %d of %d checks have failed", fault, failed, checks)
			}
			t.Logf("%v: %d of %d checks have failed", fault, failed, checks)
		})
	}
}
