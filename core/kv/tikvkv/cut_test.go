package tikvkv

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// A process is cut off from the stores in the middle of its writes, by silence or by lost requests. Its requests end
// with their deadlines. Another process writes to the same partition, and waits at most until the keys are free that
// the first one has left locked. Afterwards both go on, and see what was acknowledged by either.
func TestAProcessIsCutOff(t *testing.T) {
	for name, how := range map[string]outcome{"requests are lost": lost, "nothing answers": hangs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMock(t)
			h := &history{t: t, ended: map[string]int64{}, shown: map[string]map[int64]int64{}}
			var link *faulty
			for range 2 {
				var e *Engine
				e, link = m.openFaulty(Options{Timeout: 2 * time.Second})
				of, err := core.Open(bg, kv.Checked(e), core.Options{Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				h.all = append(h.all, of)
			}
			h.make()
			cs := []*core.Container{h.container(0), h.container(1)} // the look-up of a name needs the stores too
			written := map[string]bool{}                            // whether it was acknowledged
			write := func(p int, id string, most time.Duration) error {
				t.Helper()
				ctx, cancel := context.WithTimeout(bg, most)
				defer cancel()
				begun := time.Now()
				_, err := cs[p].Write(ctx, core.Write{Kind: core.Create,
					Doc: parse(t, fmt.Sprintf(`{"id":%q,"pk":"p"}`, id))})
				if took := time.Since(begun); took > most+3*time.Second { // two to look for the outcome
					t.Errorf("process %d waits for %v", p, took)
				}
				if written[id] = err == nil; err == nil || status.Is(err, status.UnknownOutcome) {
					return err
				}
				if !status.Is(err, status.Unavailable) && !status.Is(err, status.Timeout) {
					t.Errorf("process %d: %v", p, err)
				}
				return err
			}
			var mu sync.Mutex
			committed := false // the link is the second process's
			link.set(func(_ context.Context, req *tikvrpc.Request) outcome {
				mu.Lock()
				defer mu.Unlock()
				if committed = committed || req.Type == tikvrpc.CmdCommit; committed {
					return how
				}
				return arrives
			})
			_ = write(1, "cut", 300*time.Millisecond)
			_ = write(1, "off", 300*time.Millisecond)
			if written["off"] {
				t.Error("a write without the stores was acknowledged")
			}
			if err := write(0, "other", 8*time.Second); err != nil {
				t.Errorf("the other process: %v", err)
			}
			link.set(nil)
			if err := write(1, "again", 8*time.Second); err != nil {
				t.Errorf("after it: %v", err)
			}
			for p := range h.all {
				var lost []string
				for id, acknowledged := range written {
					_, err := cs[p].Read(bg, key("p"), value.StringOf(id))
					if acknowledged && err != nil || err != nil && !status.Is(err, status.NotFound) {
						lost = append(lost, fmt.Sprint(id, err))
					}
				}
				if slices.Sort(lost); len(lost) > 0 {
					t.Errorf("process %d doesn't have %q", p, lost)
				}
			}
			for _, e := range h.all {
				if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
					t.Errorf("check: %q, %v", problems, err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
