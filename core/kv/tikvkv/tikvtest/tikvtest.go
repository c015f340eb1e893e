// Package tikvtest has the client's simulation of a TiKV cluster, for tests. It needs no port and no file. Dial is for
// a cluster that there is.
package tikvtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	"github.com/tikv/client-go/v2/txnkv"
	"github.com/tikv/client-go/v2/util/async"
	pd "github.com/tikv/pd/client"
)

// Cluster is a simulation of a cluster, in this process. It ends with its test.
type Cluster struct {
	t      testing.TB
	stores *stores
	pd     pd.Client
}

// New returns a cluster with regions that begin at splits.
func New(t testing.TB, splits ...[]byte) *Cluster {
	client, cluster, pdc, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		t.Fatal(err)
	}
	testutils.BootstrapWithMultiRegions(cluster, splits...)
	s := &stores{Client: client}
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
		pdc.Close()
	})
	return &Cluster{t, s, pdc}
}

// stores is the connection to the stores of a cluster, which goes on when one of its users is closed.
//
// The client doesn't wait for all that it does in the background, as ending the locks of others, when it is closed. The
// simulation fails with a fault of memory when it is asked after its end. So end waits for the requests that are under
// way, and later ones fail as if the stores were gone.
type stores struct {
	tikv.Client
	mu    sync.RWMutex // held for reading by each request
	ended bool
}

var errEnded = errors.New("tikvtest: the cluster has ended")

func (s *stores) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.ended {
		return nil, errEnded
	}
	if req.Type == tikvrpc.CmdResolveLock && len(req.ResolveLock().Keys) > 0 {
		return s.resolve(ctx, addr, req, d)
	}
	return s.Client.SendRequest(ctx, addr, req, d)
}

// resolve ends the locks of a transaction that a request names, each by a commit or a rollback of its key. The
// simulation would read the whole region for them, and lets nobody write meanwhile. On a slow machine locks live longer
// than they may, more of them are met, and dozens of these requests would let a test wait for a minute.
func (s *stores) resolve(ctx context.Context, addr string, req *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	of := req.ResolveLock()
	done := &kvrpcpb.ResolveLockResponse{}
	for _, key := range of.Keys {
		one := *req
		if of.CommitVersion > 0 {
			one.Type = tikvrpc.CmdCommit
			one.Req = &kvrpcpb.CommitRequest{Keys: [][]byte{key}, StartVersion: of.StartVersion,
				CommitVersion: of.CommitVersion}
		} else {
			one.Type = tikvrpc.CmdBatchRollback
			one.Req = &kvrpcpb.BatchRollbackRequest{Keys: [][]byte{key}, StartVersion: of.StartVersion}
		}
		resp, err := s.Client.SendRequest(ctx, addr, &one, d)
		if err != nil {
			return resp, err
		}
		if done.RegionError, err = resp.GetRegionError(); done.RegionError != nil || err != nil {
			break
		}
		// A key whose lock has gone refuses both. It needs neither.
	}
	return &tikvrpc.Response{Resp: done}, nil
}

func (s *stores) SendRequestAsync(ctx context.Context, addr string, req *tikvrpc.Request,
	cb async.Callback[*tikvrpc.Response]) {
	go func() { cb.Schedule(s.SendRequest(ctx, addr, req, 0)) }()
}

func (s *stores) Close() error { return nil }

func (s *stores) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.Client.Close()
}

type staysPD struct{ pd.Client }

func (staysPD) Close() {}

// Store returns the client of one more process. wrap changes its connections to stores; nil: they stay as they are.
func (c *Cluster) Store(wrap func(tikv.Client) tikv.Client) *tikv.KVStore {
	c.t.Helper()
	return c.StoreWith(wrap, nil)
}

// StoreWith is Store that also changes the connection to the Placement Driver.
func (c *Cluster) StoreWith(wrap func(tikv.Client) tikv.Client, wrapPD func(pd.Client) pd.Client) *tikv.KVStore {
	c.t.Helper()
	var driver pd.Client = staysPD{c.pd}
	if wrapPD != nil {
		driver = wrapPD(driver)
	}
	s, err := tikv.NewTestTiKVStore(c.stores, driver, wrap, nil, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// Dial opens the client of a cluster that isn't simulated, by its Placement Drivers. It ends with the test.
func Dial(t testing.TB, members ...string) *tikv.KVStore {
	c, err := txnkv.NewClient(members)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.KVStore
}
