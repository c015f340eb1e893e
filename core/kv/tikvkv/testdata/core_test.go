package core_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
	"github.com/orrerydb/orrery/core/kv/tikvkv/tikvtest"
)

// The core's tests of all engines run with two processes on TiKV's client: on the cluster whose Placement Drivers
// ORRERY_TEST_PD has, or else on the client's simulation of a cluster. Only the overlay core.json makes this file one
// of the core's, because the core doesn't know this module.
//
// Some tests make fewer requests here, but for SLOW=1. It is read when a test asks, because go test doesn't see what an
// init function reads: it would take results of the one from its cache for the other.
func init() {
	distant = func() bool { return os.Getenv("SLOW") == "" }
	clear(engines)
	engines["tikv"] = func(t testing.TB) kv.Engine {
		if members := os.Getenv("ORRERY_TEST_PD"); members != "" {
			return onCluster(t, members)
		}
		c := tikvtest.New(t)
		return two(t, func() (*tikvkv.Engine, error) {
			return tikvkv.Use(bg, c.Store(nil), "main", tikvkv.Options{})
		})
	}
}

// onCluster returns the engine of a process over a new keyspace, which ends with the test.
func onCluster(t testing.TB, members string) kv.Engine {
	address := fmt.Sprintf("tikv://%s/core-%08x?commit=2pc", members, crc32.ChecksumIEEE([]byte(t.Name())))
	process := func() (*tikvkv.Engine, error) { return tikvkv.Open(bg, address, tikvkv.Options{}) }
	remove := func() {
		e, err := process()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(e.Remove(bg), e.Close()); err != nil {
			t.Error(err)
		}
	}
	remove() // what a killed run has left
	t.Cleanup(remove)
	return two(t, process)
}

// two returns the engine of a process. A second one can be opened beside it.
func two(t testing.TB, open func() (*tikvkv.Engine, error)) kv.Engine {
	process := func() kv.Engine {
		e, err := open()
		if err != nil {
			t.Fatal(err)
		}
		return kv.Checked(e)
	}
	e := process()
	beside.Store(e, process)
	t.Cleanup(func() { beside.Delete(e) })
	return e
}
