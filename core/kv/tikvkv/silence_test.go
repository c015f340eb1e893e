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
	after func() time.Duration
}

func muteFor(d time.Duration) mute { return mute{after: func() time.Duration { return d }} }

func (m mute) SendRequest(ctx context.Context, _ string, _ *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	takes := m.after()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(min(takes, d)):
	}
	if takes > d {
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
				w := newWatched(muteFor(tc.takes), func(ctx context.Context, _ string) error {
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

// While a store is silent, requests don't wait for it. When it answers again it gets the next one, whether it has a
// health service or not, as often as this happens.
func TestRequestsToASilentStore(t *testing.T) {
	for _, health := range []error{nil, errNoHealth} {
		t.Run(fmt.Sprint(health), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var away atomic.Bool
				w := newWatched(mute{after: func() time.Duration {
					if away.Load() {
						return time.Hour
					}
					return time.Millisecond
				}}, func(ctx context.Context, _ string) error {
					for away.Load() {
						if !pause(ctx, 10*time.Millisecond) {
							return ctx.Err()
						}
					}
					return health
				})
				defer w.Close()
				send := func() (time.Duration, error) {
					begun := time.Now()
					_, err := w.SendRequest(t.Context(), "store", new(tikvrpc.Request), time.Minute)
					return time.Since(begun), err
				}
				for range 3 {
					away.Store(true)
					if took, err := send(); !errors.Is(err, errSilent) || took != 2*silentAfter {
						t.Errorf("the first request: after %v: %v", took, err)
					}
					for range 20 {
						if took, err := send(); !errors.Is(err, errSilent) || took != 0 {
							t.Errorf("a request of a silent store: after %v: %v", took, err)
						}
						time.Sleep(healthEvery / 4)
					}
					away.Store(false)
					time.Sleep(healthEvery)
					for range 3 {
						if took, err := send(); err != nil || took != time.Millisecond {
							t.Errorf("when the store answers again: after %v: %v", took, err)
						}
						time.Sleep(time.Second)
					}
				}
			})
		})
	}
}

// A request whose caller gives up ends as before, and its store hasn't failed.
func TestCanceledAtASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(muteFor(time.Hour), func(context.Context, string) error { return fmt.Errorf("no answer") })
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), silentAfter/2)
		defer cancel()
		if _, err := w.SendRequest(ctx, "store", new(tikvrpc.Request), time.Minute); !errors.Is(err, ctx.Err()) {
			t.Error(err)
		}
	})
}
