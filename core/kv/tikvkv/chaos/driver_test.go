//go:build unix

package chaos

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	pd "github.com/tikv/pd/client"
	"github.com/tikv/pd/client/opt"
	"github.com/tikv/pd/client/pkg/caller"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
)

// stall is the longest time between two successes of something that is tried again and again.
func stall(done <-chan struct{}, try func(context.Context) error) (longest time.Duration) {
	for last := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		select {
		case <-done:
			return max(longest, time.Since(last))
		default:
		}
		ctx, cancel := context.WithTimeout(bg, 15*time.Second)
		if try(ctx) == nil {
			longest, last = max(longest, time.Since(last)), time.Now()
		}
		cancel()
	}
}

// timestamp gets a timestamp with a client of its own: it waits for nothing but the Placement Driver.
func timestamp(ctx context.Context, members []string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := pd.NewClientWithContext(ctx, caller.Component("chaos"), members, pd.SecurityOption{},
		opt.WithMaxErrorRetry(1), opt.WithCustomTimeoutOption(500*time.Millisecond))
	if err != nil {
		return err
	}
	defer c.Close()
	_, _, err = c.GetTS(ctx)
	return err
}

// While the Placement Driver is away nobody gets a timestamp, and nothing else adds to that: snapshots and writes of
// the engine wait about as long as a client that connects anew. Reads of single keys need no timestamp and go on.
func TestRestartOfThePlacementDriver(t *testing.T) {
	cl := newClusterOf(t, stores)
	e, err := tikvkv.Open(bg, "tikv://"+cl.members+"/driver?commit=2pc", tikvkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	write := func(ctx context.Context) error {
		var b kv.Batch
		b.Put([]byte("k"), []byte("v"))
		_, err := e.Write(ctx, &b, nil)
		return err
	}
	if err := write(bg); err != nil {
		t.Fatal(err)
	}
	tries := map[string]func(context.Context) error{
		"bare": func(ctx context.Context) error { return timestamp(ctx, strings.Split(cl.members, ",")) },
		"snapshot": func(ctx context.Context) error {
			s, err := e.Snapshot(ctx)
			if err == nil {
				err = s.Close()
			}
			return err
		},
		"write": write,
		"read": func(ctx context.Context) error {
			_, err := e.Get(ctx, nil, []byte("k"))
			return err
		},
	}
	done, got := make(chan struct{}), sync.Map{}
	var all sync.WaitGroup
	for name, try := range tries {
		all.Go(func() { got.Store(name, stall(done, try)) })
	}
	time.Sleep(time.Second)
	cl.must("kill", "pd")
	time.Sleep(time.Second)
	cl.must("restart", "pd")
	time.Sleep(20 * time.Second)
	close(done)
	all.Wait()
	of := func(name string) time.Duration {
		d, _ := got.Load(name)
		return d.(time.Duration)
	}
	bare := of("bare")
	for name := range tries {
		ratio := float64(of(name)) / float64(bare)
		t.Logf("%s: %v, %.2f of the bare client's", name, of(name).Round(time.Millisecond), ratio)
	}
	for _, name := range []string{"snapshot", "write"} {
		if of(name) > bare*3/2+time.Second {
			t.Errorf("a %s waits for %v, the bare client for %v", name, of(name), bare)
		}
	}
	if bare < 500*time.Millisecond || of("read") > bare/2+time.Second/2 {
		t.Errorf("a read waits for %v, the bare client for %v", of("read"), bare)
	}
}
