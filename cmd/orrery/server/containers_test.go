package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
)

// TestStatusShowsPartitions: with a good key the partitions have similar sizes, with a bad one a single partition has
// everything.
func TestStatusShowsPartitions(t *testing.T) {
	s, err := Start(Ephemeral())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	ctx := context.Background()
	if _, err := s.Engine().EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "bad"} {
		c, err := s.Engine().CreateContainer(
			ctx, "db", core.ContainerSpec{ID: name, PartitionKey: core.PartitionKeyDef{Paths: []string{"/" + name}},
				Throughput: core.Throughput{Manual: 20000}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","good":"device-%d","bad":"today"}`, i, i),
				doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: d}); err != nil {
				t.Fatal(err)
			}
		}
	}
	st := statusOf(t, s)
	seen := 0
	for _, c := range st.Containers {
		if c.Database != "db" {
			continue
		}
		seen++
		if c.Items != 200 || len(c.Partitions) != 2 || c.Partitions[0].Items+c.Partitions[1].Items != 200 ||
			c.Partitions[0].Bytes+c.Partitions[1].Bytes != c.Bytes {
			t.Fatalf("%+v", c)
		}
		least := min(c.Partitions[0].Items, c.Partitions[1].Items)
		if c.Container == "good" && least < 60 || c.Container == "bad" && least != 0 {
			t.Errorf("%s: %+v", c.Container, c.Partitions)
		}
	}
	if seen != 2 {
		t.Errorf("%d containers of db in %+v", seen, st.Containers)
	}
}

// TestStatusShowsIdentity: a store has the same identity after a restart. A store in memory has none.
func TestStatusShowsIdentity(t *testing.T) {
	identity := func(set func(*Config)) *kv.Identity {
		cfg := Ephemeral()
		set(&cfg)
		s, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Stop(context.Background()) }()
		return statusOf(t, s).Identity
	}
	dir := t.TempDir()
	onDisk := func(c *Config) { c.Memory, c.Data = false, dir }
	first, second := identity(onDisk), identity(onDisk)
	if first == nil || second == nil || *first != *second || first.ID == "" {
		t.Errorf("%+v, then %+v", first, second)
	}
	if i := identity(func(*Config) {}); i != nil {
		t.Errorf("memory has the identity %+v", i)
	}
}

func statusOf(t *testing.T, s *Server) (st Status) {
	t.Helper()
	r, err := http.Get("http://" + s.Addr(Admin) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&st); err != nil {
		t.Fatal(err)
	}
	return st
}
