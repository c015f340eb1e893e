package tikvkv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tikv/client-go/v2/config"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/util"
	pd "github.com/tikv/pd/client"
	pdhttp "github.com/tikv/pd/client/http"
	"github.com/tikv/pd/client/opt"
	"github.com/tikv/pd/client/pkg/caller"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// openTime is the longest time of Open. The operator is told within ten seconds what is wrong, and a process takes a
// part of them to start.
const openTime = 9 * time.Second

// Open opens the store at an address (see Address), which it makes if the keyspace is empty. Its errors are one
// sentence for the operator, and come within ten seconds. After an error nothing was written.
func Open(ctx context.Context, address string, o Options) (*Engine, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, refused("%s", err)
	}
	o.TwoPhase = o.TwoPhase || a.TwoPhase
	replaceLogger()
	if o.Logger != nil {
		target.Store(o.Logger)
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	security := config.NewSecurity(a.CA, a.Cert, a.Key, nil)
	secure, err := security.ToTLSConfig()
	if err != nil {
		return nil, refused("The certificates of the address can't be used: %s.", err)
	}
	if err := a.probe(ctx, secure); err != nil {
		return nil, err
	}
	type opened struct {
		e   *Engine
		err error
	}
	done := make(chan opened, 1)
	life, stop := context.WithCancel(context.Background())
	c := &connecting{Address: a, security: security, secure: secure}
	go func() {
		for {
			e, err := c.connect(ctx, life, stop, o)
			if errors.Is(err, errStream) && pause(ctx, reconnect) {
				continue
			}
			done <- opened{e, err}
			return
		}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			stop()
		}
		return r.e, r.err
	case <-ctx.Done():
		stop()
		go func() { // what is opened too late is closed
			if r := <-done; r.err == nil {
				_ = r.e.Close()
			}
		}()
		if !c.answered.Load() {
			return nil, refused("What answers at %s is no Placement Driver, or has no leader now.", a.Members[0])
		}
		return nil, refused("The stores of the cluster at %s don't answer, or it has none.", a.Members[0])
	}
}

// probe asks the members for their cluster, until one of them answers. The client itself would go on trying, and would
// not tell what is wrong.
func (a *Address) probe(ctx context.Context, secure *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, openTime/2)
	defer cancel()
	answers := make(chan error, len(a.Members))
	for _, m := range a.Members {
		go func() { answers <- ask(ctx, m, secure) }()
	}
	var err error
	for range a.Members {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

// ask asks one member for its version.
func ask(ctx context.Context, member string, secure *tls.Config) error {
	scheme, transport := "http", &http.Transport{TLSClientConfig: secure}
	if secure != nil {
		scheme = "https"
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+member+"/pd/api/v1/version", nil)
	if err != nil {
		return refused("%s is no address: %s.", member, err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" || errors.Is(err, context.DeadlineExceeded) {
			return refused("No Placement Driver answers at %s: %s.", member, err)
		}
		return refused("The Placement Driver at %s doesn't accept the connection, or its certificate isn't accepted: "+
			"%s.", member, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusOK {
		return refused("What answers at %s is no Placement Driver, or it needs certificates: %s.", member, resp.Status)
	}
	return nil
}

// errStream is an error of the client that says nothing about the cluster. On a busy machine its first request of the
// Placement Driver was seen to end as canceled, although nobody had canceled it.
var errStream = errors.New("tikvkv: the client has canceled its own request")

const reconnect = 50 * time.Millisecond // until the next attempt after errStream

// connecting is an address that is being connected to.
type connecting struct {
	Address
	security config.Security
	secure   *tls.Config
	answered atomic.Bool // the Placement Driver has answered in its own protocol
}

// share gives the certificates to the client's settings of the process. It takes those of its questions for the health
// of stores from there, and without them a store would be found unreachable for ever after one failed request. So
// stores that a process has open at the same time need the same certificates.
func (a *connecting) share() {
	if a.secure != nil {
		config.UpdateGlobal(func(c *config.Config) { c.Security = a.security })
	}
}

// connect opens the client and the store. life is the time of the client's connections, ctx that of the call.
func (a *connecting) connect(ctx, life context.Context, stop func(), o Options) (*Engine, error) {
	settings := config.GetGlobalConfig()
	driver, err := pd.NewClientWithContext(life, caller.Component("orrery"), a.Members,
		pd.SecurityOption{CAPath: a.CA, CertPath: a.Cert, KeyPath: a.Key},
		opt.WithGRPCDialOptions(grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:    time.Duration(settings.TiKVClient.GrpcKeepAliveTime) * time.Second,
			Timeout: settings.TiKVClient.GetGrpcKeepAliveTimeout(),
		})), opt.WithCustomTimeoutOption(time.Duration(settings.PDClient.PDServerTimeout)*time.Second))
	if err != nil {
		return nil, refused("The Placement Driver at %s can't be used: %s.", a.Members[0], err)
	}
	a.answered.Store(true)
	codec := tikv.NewCodecPDClient(tikv.ModeTxn, util.NewInterceptedPDClient(newPatient(life, driver)))
	safe, err := tikv.NewEtcdSafePointKV(a.Members, a.secure)
	if err != nil {
		driver.Close()
		return nil, refused("The Placement Driver at %s can't be used: %s.", a.Members[0], err)
	}
	a.share()
	rpc := newWatched(tikv.NewRPCClient(tikv.WithSecurity(a.security), tikv.WithCodec(codec.GetCodec())),
		func(ctx context.Context, addr string) error { return askHealth(ctx, addr, a.secure) })
	store, err := tikv.NewKVStore(fmt.Sprintf("orrery-%d", codec.GetClusterID(ctx)), codec, safe, rpc)
	if err != nil {
		driver.Close()
		_, _ = rpc.Close(), safe.Close()
		if status.Code(err) == codes.Canceled && life.Err() == nil && ctx.Err() == nil {
			return nil, errStream
		}
		return nil, refused("The cluster at %s can't be used: %s.", a.Members[0], err)
	}
	rpc.of(store)
	e, err := Use(ctx, store, a.Keyspace, o)
	if err != nil {
		return nil, err
	}
	e.stop = stop
	e.statistics = &statistics{codec, pdhttp.NewClientWithServiceDiscovery("orrery", driver.GetServiceDiscovery(),
		pdhttp.WithTLSConfig(a.secure))}
	return e, nil
}
