package tikvkv

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// A store that has failed a request gets no others until it answers a question for its health, which the client asks
// every second. TiKV answers it. A store that only speaks TiKV's protocol may not have the service, and then the client
// would send it nothing until the end of the process, however well it is. So for such a store the client is told to
// forget what it knows of it as soon as the store is there again. The next request for one of its ranges looks it up.
//
// Example: a store is paused for 15 s, and a connection to it ends. 10 ms after the store goes on it answers that it
// has no health service, and is forgotten. Requests that wait for it go on with their next attempt, at most half a
// second later.
//
// The client leaves its own question for each store that is forgotten, once a second.
const (
	healthTime  = time.Second            // the longest time of one question
	healthEvery = 500 * time.Millisecond // from one question to the next
)

var (
	// errNoHealth says that a store answers, but has no health service.
	errNoHealth = errors.New("tikvkv: the store has no health service")
	// errIll says that a store answers that it doesn't serve.
	errIll = errors.New("tikvkv: the store doesn't serve")
)

// askHealth asks a store for its health.
func askHealth(ctx context.Context, addr string, secure *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = credentials.NewTLS(secure)
	}
	c, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(transport))
	if err != nil {
		return err
	}
	defer c.Close()
	resp, err := healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return errNoHealth
	case err != nil:
		return err
	case resp.Status != healthpb.HealthCheckResponse_SERVING:
		return errIll
	}
	return nil
}

// watched is the client's connection to the stores. It looks after stores without a health service.
type watched struct {
	tikv.Client
	ask    func(ctx context.Context, addr string) error
	life   context.Context // of the connection
	end    context.CancelFunc
	mu     sync.Mutex
	forget func(addr string)
	stores map[string]watch // that have failed a request, by address

	questions map[string]*question // that are under way, by address
	silent    map[string]bool      // stores that haven't answered their last question, by address
}

// watch says what is known of a store that has failed a request.
type watch uint8

const (
	unknown watch = iota
	asked         // it is being asked for its health
	failed        // it is being asked, and has failed another request meanwhile
	serves        // it has the service: the client finds out by itself
)

func newWatched(c tikv.Client, ask func(ctx context.Context, addr string) error) *watched {
	w := &watched{Client: c, ask: ask, forget: func(string) {}, stores: map[string]watch{},
		questions: map[string]*question{}, silent: map[string]bool{}}
	w.life, w.end = context.WithCancel(context.Background())
	return w
}

// of says whose connection it is.
func (w *watched) of(store *tikv.KVStore) {
	const unresolved = 0 // the client asks for its address
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget = func(addr string) {
		cache := store.GetRegionCache()
		for _, s := range cache.GetStoresByType(tikvrpc.TiKV) {
			if s.GetAddr() == addr {
				cache.SetRegionCacheStore(s.StoreID(), "", "", tikvrpc.TiKV, unresolved, nil)
			}
		}
	}
}

// CloseAddrVer closes the connections to a store up to a version. The client looks for this method.
func (w *watched) CloseAddrVer(addr string, version uint64) error {
	if c, ok := w.Client.(interface {
		CloseAddrVer(addr string, version uint64) error
	}); ok {
		return c.CloseAddrVer(addr, version)
	}
	return w.CloseAddr(addr)
}

// Close implements tikv.Client.
func (w *watched) Close() error {
	w.end()
	return w.Client.Close()
}

// note notes that a store has failed a request.
func (w *watched) note(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.stores[addr] {
	case unknown:
		w.stores[addr] = asked
		go w.look(addr)
	case asked:
		w.stores[addr] = failed
	}
}

// look asks a store for its health until it answers, and again if it has failed other requests then.
func (w *watched) look(addr string) {
	for {
		w.set(addr, asked)
		err := w.ask(w.life, addr)
		w.mu.Lock()
		if isAnswer(err) {
			delete(w.silent, addr)
		}
		if err == nil {
			w.stores[addr] = serves
		}
		forget := w.forget
		w.mu.Unlock()
		switch {
		case err == nil:
			return
		case errors.Is(err, errNoHealth):
			forget(addr)
		}
		if !pause(w.life, healthEvery) || errors.Is(err, errNoHealth) && w.rest(addr) {
			return
		}
	}
}

func (w *watched) set(addr string, to watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stores[addr] = to
}

// rest ends the watch of a store that has failed no other request, and isn't silent again.
func (w *watched) rest(addr string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stores[addr] == failed || w.silent[addr] {
		return false
	}
	delete(w.stores, addr)
	return true
}
