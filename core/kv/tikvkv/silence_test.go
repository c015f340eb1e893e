package tikvkv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// mute answers requests after a time.
type mute struct {
	tikv.Client
	after time.Duration
}

func (m mute) SendRequest(ctx context.Context, _ string, _ *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(min(m.after, d)):
	}
	if m.after > d {
		return nil, context.DeadlineExceeded
	}
	return &tikvrpc.Response{}, nil
}

func (m mute) Close() error { return nil }

// A store that answers nothing is found out long before the client's patience ends. One that is only slow isn't.
func TestSilentStores(t *testing.T) {
	const patience, never = 30 * time.Second, time.Hour
	unheard := errors.New("there is no answer")
	for _, tc := range []struct {
		name   string
		takes  time.Duration // a request
		health error
		deep   time.Duration // the time of a question for the health
		want   error
		ends   time.Duration
	}{
		{"quick", 10 * time.Millisecond, unheard, healthTime, nil, 10 * time.Millisecond},
		{"slow", 10 * time.Second, nil, time.Millisecond, nil, 10 * time.Second},
		{"slow, without a health service", 10 * time.Second, errNoHealth, time.Millisecond, nil, 10 * time.Second},
		{"slow and ill", 10 * time.Second, errIll, time.Millisecond, nil, 10 * time.Second},
		{"slower than the client waits", never, nil, time.Millisecond, context.DeadlineExceeded, patience},
		{"silent", never, unheard, healthTime, context.DeadlineExceeded, 2 * silentAfter},
		{"answers while it is asked", silentAfter * 3 / 2, unheard, healthTime, nil, silentAfter * 3 / 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				w := newWatched(mute{after: tc.takes}, func(ctx context.Context, _ string) error {
					asked.Add(1)
					pause(ctx, tc.deep)
					return tc.health
				})
				defer w.Close()
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() {
						begun := time.Now()
						_, err := w.SendRequest(t.Context(), "store", new(tikvrpc.Request), patience)
						if took := time.Since(begun); !errors.Is(err, tc.want) || took != tc.ends {
							t.Errorf("after %v: %v", took, err)
						}
					})
				}
				all.Wait()
				if n, most := int(asked.Load()), int(tc.ends/silentAfter)+1; n > most {
					t.Errorf("%d questions in %v, want at most %d for all requests", n, tc.ends, most)
				}
			})
		})
	}
}

// A request whose caller gives up ends as before, and its store hasn't failed.
func TestCanceledAtASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(mute{after: time.Hour}, func(context.Context, string) error { return fmt.Errorf("no answer") })
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), silentAfter/2)
		defer cancel()
		if _, err := w.SendRequest(ctx, "store", new(tikvrpc.Request), time.Minute); !errors.Is(err, ctx.Err()) {
			t.Error(err)
		}
	})
}
