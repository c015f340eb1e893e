package tikvkv

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/tikvkv/tikvtest"
)

var bg = context.Background()

// mock is the client's simulation of a cluster.
type mock struct {
	*tikvtest.Cluster
	t testing.TB
}

// newMock returns a cluster with regions that begin at splits.
func newMock(t testing.TB, splits ...[]byte) *mock {
	replaceLogger()
	return &mock{tikvtest.New(t, splits...), t}
}

// open returns the engine of one more process.
func (m *mock) open(keyspace string) *Engine {
	m.t.Helper()
	e, err := Use(bg, m.Store(nil), keyspace, Options{})
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
