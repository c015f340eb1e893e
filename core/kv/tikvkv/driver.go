package tikvkv

import (
	"context"
	"sync"
	"time"

	pd "github.com/tikv/pd/client"
	"github.com/tikv/pd/client/clients/router"
	"github.com/tikv/pd/client/clients/tso"
	"github.com/tikv/pd/client/opt"
	"github.com/tikv/pd/client/pkg/caller"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// While the Placement Driver has no leader nobody gets a timestamp, or is told where a range is. The client then waits
// before it asks again: a quarter of a second at first, and up to three seconds later. A connection that was refused is
// tried again after one to three seconds. So requests would wait for seconds after the driver is there again. Here what
// the driver didn't answer is asked again after driverEvery, until the request ends. While requests wait, in the client
// too, connections that were refused are tried again as often.
//
// The other members name the leader that is gone for as long as its lease lasts. So the client believes that it has
// found the leader, and looks again after half a second. Here it looks as often as connections are tried.
//
// Example: the driver is away for two seconds. A commit that waits for its timestamp gets it some tenths of a second
// after that, and not one to three seconds.
const driverEvery = 100 * time.Millisecond

// patient is the client of the Placement Driver, which asks again.
type patient struct {
	pd.Client
	life context.Context // of the connection
	*tries
}

// tries are the attempts to connect again.
type tries struct {
	mu   sync.Mutex
	last time.Time
}

func newPatient(life context.Context, c pd.Client) patient { return patient{c, life, new(tries)} }

// again waits for the next attempt of something that has failed, and reports whether there is one.
func (p patient) again(ctx context.Context) bool {
	if ctx.Err() != nil || p.life.Err() != nil || !pause(ctx, driverEvery) {
		return false
	}
	p.reconnect()
	return true
}

// reconnect tries connections to members that were refused again, and looks who their leader is.
func (p patient) reconnect() {
	if !p.due() {
		return
	}
	members := p.GetServiceDiscovery()
	members.GetClientConns().Range(func(_, c any) bool {
		c.(*grpc.ClientConn).ResetConnectBackoff()
		return true
	})
	members.ScheduleCheckMemberChanged()
}

// due reports whether a connection that was refused is tried again now. Many requests may wait: one attempt is for all
// of them.
func (t *tries) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.last) < driverEvery {
		return false
	}
	t.last = time.Now()
	return true
}

// WithCallerComponent implements pd.Client.
func (p patient) WithCallerComponent(c caller.Component) pd.Client {
	return patient{p.Client.WithCallerComponent(c), p.life, p.tries}
}

// GetTS implements pd.Client. It asks for one timestamp. The client's own GetTS is a loop for changes of the driver's
// leader that doesn't end when it has one, and asks for twenty.
func (p patient) GetTS(ctx context.Context) (physical, logical int64, err error) {
	return p.GetTSAsync(ctx).Wait()
}

// GetTSAsync implements pd.Client.
func (p patient) GetTSAsync(ctx context.Context) tso.TSFuture {
	return &timestamp{p.Client.GetTSAsync(ctx), p, ctx}
}

// timestamp is one that was asked for.
type timestamp struct {
	tso.TSFuture
	p   patient
	ctx context.Context
}

// Wait implements tso.TSFuture. An error is the last of several, when the ctx of the request or that of the connection
// has ended.
func (t *timestamp) Wait() (physical, logical int64, err error) {
	waits, over := context.WithCancel(t.ctx)
	defer over()
	late := time.AfterFunc(driverEvery, func() {
		for ok := true; ok; ok = pause(waits, driverEvery) {
			t.p.reconnect()
		}
	})
	defer late.Stop()
	for {
		physical, logical, err = t.TSFuture.Wait()
		if err == nil || !t.p.again(t.ctx) {
			return physical, logical, err
		}
		t.TSFuture = t.p.Client.GetTSAsync(t.ctx)
	}
}

// located asks where a range is. An error that doesn't say that the driver is away is the client's.
func (p patient) located(ctx context.Context, ask func() (*router.Region, error)) (*router.Region, error) {
	for {
		r, err := ask()
		if err == nil || status.Code(err) != codes.Unavailable || !p.again(ctx) {
			return r, err
		}
	}
}

// GetRegion implements pd.Client.
func (p patient) GetRegion(ctx context.Context, key []byte, o ...opt.GetRegionOption) (*router.Region, error) {
	return p.located(ctx, func() (*router.Region, error) { return p.Client.GetRegion(ctx, key, o...) })
}

// GetPrevRegion implements pd.Client.
func (p patient) GetPrevRegion(ctx context.Context, key []byte, o ...opt.GetRegionOption) (*router.Region, error) {
	return p.located(ctx, func() (*router.Region, error) { return p.Client.GetPrevRegion(ctx, key, o...) })
}

// GetRegionByID implements pd.Client.
func (p patient) GetRegionByID(ctx context.Context, id uint64, o ...opt.GetRegionOption) (*router.Region, error) {
	return p.located(ctx, func() (*router.Region, error) { return p.Client.GetRegionByID(ctx, id, o...) })
}
