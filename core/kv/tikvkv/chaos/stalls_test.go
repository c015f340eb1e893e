//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
)

// late is the longest time in which a process answers again, from the moment in which a process that begins does.
const late = 3 * time.Second

// The only store of a cluster, or its Placement Driver, stalls or ends, for a time in which connections end, or don't.
// As soon as the cluster answers a process that begins, it answers the one that was there before: reads, writes and
// scans that have waited, and new ones.
func TestStallsEnd(t *testing.T) {
	cl := newClusterOf(t, 1)
	address := "tikv://" + cl.members + "/stalls?commit=2pc"
	e, err := tikvkv.Open(bg, address, tikvkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, tc := range []struct {
		part, begin, end string
		lasts            time.Duration
	}{
		{"1", "pause", "resume", 2 * time.Second},
		{"1", "pause", "resume", 16 * time.Second},
		{"pd", "pause", "resume", 2 * time.Second},
		{"pd", "pause", "resume", 16 * time.Second},
		{"1", "kill", "restart", time.Second},
		{"pd", "kill", "restart", time.Second},
	} {
		t.Run(fmt.Sprint(tc.begin, " ", tc.part, " ", tc.lasts), func(t *testing.T) {
			if err := write(bg, e); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			var all sync.WaitGroup
			var mu sync.Mutex
			well := map[string]time.Time{} // the end of the first success after the fault
			var ended time.Time
			for name, try := range map[string]func(context.Context) error{
				"a process that begins": func(ctx context.Context) error { return begins(ctx, address) },
				"write":                 func(ctx context.Context) error { return write(ctx, e) },
				"scan":                  func(ctx context.Context) error { return scan(ctx, e) },
				"get": func(ctx context.Context) error {
					_, err := e.Get(ctx, nil, []byte("k"))
					return err
				},
			} {
				all.Go(func() {
					for {
						select {
						case <-done:
							return
						case <-time.After(10 * time.Millisecond):
						}
						ctx, cancel := context.WithTimeout(bg, 15*time.Second)
						err := try(ctx)
						cancel()
						mu.Lock()
						if _, is := well[name]; !is && err == nil && !ended.IsZero() {
							well[name] = time.Now()
						}
						mu.Unlock()
					}
				})
			}
			time.Sleep(200 * time.Millisecond)
			cl.must(tc.begin, tc.part)
			time.Sleep(tc.lasts)
			cl.must(tc.end, tc.part)
			mu.Lock()
			ended = time.Now()
			mu.Unlock()
			for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
				mu.Lock()
				n := len(well)
				mu.Unlock()
				if n == 4 {
					break
				}
			}
			close(done)
			all.Wait()
			first, ok := well["a process that begins"]
			if !ok {
				t.Fatal("the cluster answers nobody")
			}
			for name, at := range well {
				t.Logf("%s: %v", name, at.Sub(ended).Round(time.Millisecond))
			}
			for _, name := range []string{"get", "write", "scan"} {
				if at, ok := well[name]; !ok || at.Sub(first) > late {
					t.Errorf("a %s has waited %v longer than a process that begins (%v)", name, at.Sub(first), ok)
				}
			}
		})
	}
}

// begins opens the store as a new process does, and reads.
func begins(ctx context.Context, address string) error {
	e, err := tikvkv.Open(ctx, address, tikvkv.Options{})
	if err != nil {
		return err
	}
	_, err = e.Get(ctx, nil, []byte("k"))
	return errors.Join(err, e.Close())
}

func write(ctx context.Context, e kv.Engine) error {
	var b kv.Batch
	b.Put([]byte("k"), []byte("v"))
	_, err := e.Write(ctx, &b, nil)
	return err
}

func scan(ctx context.Context, e kv.Engine) error {
	s, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	it, err := s.Iter([]byte("a"), []byte("z"))
	if err != nil {
		return errors.Join(err, s.Close())
	}
	it.First()
	return errors.Join(it.Err(), it.Close(), s.Close())
}

// Each of three stores is killed, and starts again. While the others elect leaders nobody gets an answer for the ranges
// that it led. A process that was there before waits for that, and little longer: it finds the new leaders.
func TestKilledStores(t *testing.T) {
	cl := newReplicated(t, stores)
	address := "tikv://" + cl.members + "/killed?commit=2pc"
	e, err := tikvkv.Open(bg, address, tikvkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := write(bg, e); err != nil {
		t.Fatal(err)
	}
	for store := range stores {
		const begin = "a process that begins"
		done, got := make(chan struct{}), map[string]time.Duration{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for name, try := range map[string]func(context.Context) error{
			begin:   func(ctx context.Context) error { return begins(ctx, address) },
			"write": func(ctx context.Context) error { return write(ctx, e) },
			"scan":  func(ctx context.Context) error { return scan(ctx, e) },
			"get": func(ctx context.Context) error {
				_, err := e.Get(ctx, nil, []byte("k"))
				return err
			},
		} {
			all.Go(func() {
				d := stall(done, try)
				mu.Lock()
				defer mu.Unlock()
				got[name] = d
			})
		}
		number := fmt.Sprint(store + 1)
		cl.must("kill", number)
		time.Sleep(20 * time.Second)
		cl.must("restart", number)
		time.Sleep(5 * time.Second)
		close(done)
		all.Wait()
		for name, d := range got {
			t.Logf("store %s, %s: %v", number, name, d.Round(time.Millisecond))
			if d > got[begin]+late {
				t.Errorf("a %s has waited for %v, a process that begins for %v", name, d, got[begin])
			}
		}
	}
}
