package tikvkv

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
)

// clusterEnv has the Placement Drivers of a cluster that tests may use: host:port,host:port. Each test makes keyspaces
// of its own, and removes their keys.
const clusterEnv = "ORRERY_TEST_PD"

var keyspaces atomic.Int64

// onCluster opens stores of new keyspaces, or skips the test if there is no cluster.
func onCluster(t *testing.T) func(t *testing.T) kv.Engine {
	members := os.Getenv(clusterEnv)
	if members == "" {
		t.Skip("there is no cluster: " + clusterEnv)
	}
	return func(t *testing.T) kv.Engine {
		address := fmt.Sprintf("tikv://%s/test-%d-%d?commit=2pc", members, time.Now().UnixNano(), keyspaces.Add(1))
		e, err := Open(bg, address, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			again, err := Open(bg, address, Options{})
			if err != nil {
				t.Fatal(err)
			}
			lo, hi := again.all()
			if err := again.drop(bg, lo, hi); err != nil {
				t.Error(err)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		})
		return modest{e}
	}
}

// modest has a smaller limit for values: that of TiKV's clusters is more than a small one takes within a test.
type modest struct{ *Engine }

func (modest) Limits() kv.Limits {
	return kv.Limits{Key: limits.Key, Value: 2 << 20, Batch: limits.Batch}
}

func TestContractOnACluster(t *testing.T) { kvtest.Run(t, onCluster(t)) }
