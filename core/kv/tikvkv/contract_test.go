package tikvkv

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	pd "github.com/tikv/pd/client"
)

var bg = context.Background()

// mock is the client's simulation of a cluster, in this process.
type mock struct {
	t      testing.TB
	client *testutils.MockClient
	pd     pd.Client
}

// newMock returns a cluster with regions that begin at splits.
func newMock(t testing.TB, splits ...[]byte) *mock {
	replaceLogger()
	client, cluster, pdc, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		t.Fatal(err)
	}
	testutils.BootstrapWithMultiRegions(cluster, splits...)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		pdc.Close()
	})
	return &mock{t, client, pdc}
}

// stays is a client of the cluster that goes on when one of its users is closed.
type stays struct{ tikv.Client }

func (stays) Close() error { return nil }

type staysPD struct{ pd.Client }

func (staysPD) Close() {}

// store returns the client of one more process. wrap changes its connections to stores.
func (m *mock) store(wrap func(tikv.Client) tikv.Client) *tikv.KVStore {
	s, err := tikv.NewTestTiKVStore(stays{m.client}, staysPD{m.pd}, wrap, nil, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// open returns the engine of one more process.
func (m *mock) open(keyspace string) *Engine {
	m.t.Helper()
	e, err := Use(bg, m.store(nil), keyspace, Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	return e
}

// Each of several processes over one store fulfils the contract. The keys of the suite are in several regions.
func TestContract(t *testing.T) {
	l := newLayout("main")
	kvtest.Run(t, func(t *testing.T) kv.Engine {
		m := newMock(t, l.data([]byte("b")), l.data([]byte("k01")), l.data([]byte("k015")), l.data([]byte("z")))
		other := m.open("main")
		t.Cleanup(func() {
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		})
		return m.open("main")
	})
}
