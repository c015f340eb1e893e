// Package tikvtest has the client's simulation of a TiKV cluster, for tests. It needs no port and no file.
package tikvtest

import (
	"testing"

	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	pd "github.com/tikv/pd/client"
)

// Cluster is a simulation of a cluster, in this process. It ends with its test.
type Cluster struct {
	t      testing.TB
	client *testutils.MockClient
	pd     pd.Client
}

// New returns a cluster with regions that begin at splits.
func New(t testing.TB, splits ...[]byte) *Cluster {
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
	return &Cluster{t, client, pdc}
}

// stays is a client of the cluster that goes on when one of its users is closed.
type stays struct{ tikv.Client }

func (stays) Close() error { return nil }

type staysPD struct{ pd.Client }

func (staysPD) Close() {}

// Store returns the client of one more process. wrap changes its connections to stores; nil: they stay as they are.
func (c *Cluster) Store(wrap func(tikv.Client) tikv.Client) *tikv.KVStore {
	c.t.Helper()
	s, err := tikv.NewTestTiKVStore(stays{c.client}, staysPD{c.pd}, wrap, nil, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}
