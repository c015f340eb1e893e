package tikvkv

import (
	"errors"
	"fmt"
	"os"
	"strings"
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
			if err := errors.Join(again.Remove(bg), again.Close()); err != nil {
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

// Maintenance works with the Placement Driver of the cluster.
func TestMaintenanceOnACluster(t *testing.T) {
	e := onCluster(t)(t).(modest).Engine
	put(t, e, "a", strings.Repeat("v", maxInline+1))
	put(t, e, "z", "v")
	if err := e.Presplit(bg, [][]byte{[]byte("k")}); err != nil {
		t.Error(err)
	}
	if err := e.CollectGarbage(bg, 0); err != nil {
		t.Error(err)
	}
	if n, err := e.Sweep(bg); n != 0 || err != nil {
		t.Error(n, err)
	}
	if _, err := e.statistics.size(bg, e.data([]byte("a")), e.data([]byte("zz"))); err != nil {
		t.Error(err)
	}
	cuts, err := e.SplitPoints([]byte("a"), []byte("zz"), 1000)
	if err != nil || len(cuts) != 1 || string(cuts[0]) != "k" {
		t.Errorf("%q, %v", cuts, err)
	}
	if v, err := e.Get(bg, nil, []byte("a")); err != nil || len(v) != maxInline+1 {
		t.Errorf("%d bytes, %v", len(v), err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
