package tikvkv

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pd "github.com/tikv/pd/client"
	"github.com/tikv/pd/client/clients/router"
	"github.com/tikv/pd/client/clients/tso"
	"github.com/tikv/pd/client/opt"
	"github.com/tikv/pd/client/servicediscovery"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// away is a Placement Driver that fails until a time.
type away struct {
	pd.Client
	until time.Time
	err   error
	asked int
	tries atomic.Int32 // of connections
	looks atomic.Int32 // for the leader
}

func (a *away) GetServiceDiscovery() servicediscovery.ServiceDiscovery { return nowhere{a: a} }

// nowhere knows no driver to connect to.
type nowhere struct {
	servicediscovery.ServiceDiscovery
	a *away
}

func (n nowhere) GetClientConns() *sync.Map {
	n.a.tries.Add(1)
	return new(sync.Map)
}

func (n nowhere) ScheduleCheckMemberChanged() { n.a.looks.Add(1) }

func (a *away) answer() error {
	a.asked++
	if time.Now().Before(a.until) {
		return a.err
	}
	return nil
}

// answered is the answer of a driver that was asked for a timestamp.
type answered struct{ err error }

func (a answered) Wait() (int64, int64, error) { return 7, 8, a.err }

func (a *away) GetTSAsync(context.Context) tso.TSFuture { return answered{a.answer()} }

func (a *away) GetRegion(context.Context, []byte, ...opt.GetRegionOption) (*router.Region, error) {
	if err := a.answer(); err != nil {
		return nil, err
	}
	return new(router.Region), nil
}

// What the Placement Driver doesn't answer is asked again as soon as it may be there, for as long as somebody waits.
func TestPatienceWithTheDriver(t *testing.T) {
	gone, wrong := status.Error(codes.Unavailable, "not leader"), errors.New("no such thing")
	for _, tc := range []struct {
		name                      string
		err                       error
		away, patience, life      time.Duration
		stamped, located          error
		takesStamped, takesRegion time.Duration
	}{
		{"there", gone, 0, time.Hour, time.Hour, nil, nil, 0, 0},
		{"away", gone, 2050 * time.Millisecond, time.Hour, time.Hour, nil, nil, 2100 * time.Millisecond,
			2100 * time.Millisecond},
		{"away for longer than the request", gone, time.Hour, 950 * time.Millisecond, time.Hour, gone, gone,
			950 * time.Millisecond, 950 * time.Millisecond},
		{"away when the client is closed", gone, time.Hour, 2 * time.Hour, 950 * time.Millisecond, gone, gone,
			time.Second, time.Second},
		{"another error", wrong, 2050 * time.Millisecond, time.Hour, time.Hour, nil, wrong, 2100 * time.Millisecond, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for what, do := range map[string]struct {
					ask   func(ctx context.Context, p patient) error
					want  error
					takes time.Duration
				}{
					"a timestamp": {func(ctx context.Context, p patient) error {
						physical, logical, err := p.GetTS(ctx)
						if err == nil && (physical != 7 || logical != 8) {
							t.Errorf("got %d, %d", physical, logical)
						}
						return err
					}, tc.stamped, tc.takesStamped},
					"a range": {func(ctx context.Context, p patient) error {
						r, err := p.GetRegion(ctx, nil)
						if (r == nil) != (err != nil) {
							t.Errorf("got %v, %v", r, err)
						}
						return err
					}, tc.located, tc.takesRegion},
				} {
					begun := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
					life, end := context.WithTimeout(t.Context(), tc.life)
					driver := &away{until: begun.Add(tc.away), err: tc.err}
					err := do.ask(ctx, newPatient(life, driver))
					if took := time.Since(begun); !errors.Is(err, do.want) || took != do.takes {
						t.Errorf("%s: after %v: %v", what, took, err)
					}
					if most := int(do.takes/driverEvery) + 1; driver.asked > most {
						t.Errorf("%s: asked %d times in %v", what, driver.asked, do.takes)
					}
					end()
					cancel()
				}
			})
		})
	}
}

// However many requests wait for the driver, one connection is tried again at a time.
func TestManyWaitForTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver := &away{until: time.Now().Add(time.Second), err: status.Error(codes.Unavailable, "not leader")}
		p := newPatient(t.Context(), driver)
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 100 {
			all.Go(func() {
				_, err := p.located(t.Context(), func() (*router.Region, error) {
					mu.Lock()
					defer mu.Unlock()
					return nil, driver.answer()
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := driver.tries.Load(); n == 0 || n > int32(time.Second/driverEvery) {
			t.Errorf("a connection was tried %d times in a second", n)
		}
	})
}

// slow is a Placement Driver that takes its time.
type slow struct {
	away
	takes time.Duration
}

func (s *slow) GetTSAsync(context.Context) tso.TSFuture { return s }

func (s *slow) Wait() (int64, int64, error) {
	time.Sleep(s.takes)
	return 7, 8, nil
}

// The client waits for a connection by itself, without an error. While it does, connections are tried again, and it
// looks for the leader.
func TestConnectionsAreTriedAgain(t *testing.T) {
	for takes, want := range map[time.Duration]int32{
		0: 0, driverEvery / 2: 0, 3*driverEvery + driverEvery/2: 3, 30*driverEvery + driverEvery/2: 30,
	} {
		synctest.Test(t, func(t *testing.T) {
			driver := &slow{takes: takes}
			if _, _, err := newPatient(t.Context(), driver).GetTS(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if n, looks := driver.tries.Load(), driver.looks.Load(); n != want || looks != want {
				t.Errorf("%v: tried %d times and looked %d times for the leader, want %d", takes, n, looks, want)
			}
		})
	}
}

// One timestamp is asked for where one is wanted.
func TestOneTimestampIsAskedFor(t *testing.T) {
	driver := new(away)
	if _, _, err := newPatient(t.Context(), driver).GetTS(t.Context()); err != nil || driver.asked != 1 {
		t.Errorf("asked %d times: %v", driver.asked, err)
	}
}
