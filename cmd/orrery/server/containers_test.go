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
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// TestStatusShowsPartitions: a good key shows as even bars, a bad one as one tall bar.
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
		c, err := s.Engine().CreateContainer(ctx, "db", core.ContainerSpec{ID: name, PartitionKey: core.PartitionKeyDef{Paths: []string{"/" + name}},
			Throughput: core.Throughput{Manual: 20000}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","good":"device-%d","bad":"today"}`, i, i), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: d}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := http.Get("http://" + s.Addr(Admin) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var st Status
	if err := json.NewDecoder(r.Body).Decode(&st); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range st.Containers {
		if c.Database != "db" {
			continue
		}
		seen++
		if c.Items != 200 || len(c.Partitions) != 2 || c.Partitions[0].Items+c.Partitions[1].Items != 200 || c.Partitions[0].Bytes+c.Partitions[1].Bytes != c.Bytes {
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

// TestStatusListsSomeContainers: of very many containers the status lists the first ones and says how many more there
// are; it opens none.
func TestStatusListsSomeContainers(t *testing.T) {
	raw := memkv.New()
	open := func() *core.Engine {
		e, err := core.Open(context.Background(), &lasting{raw}, core.Options{MinSlots: 1})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	if _, err := e.EnsureDatabase(context.Background(), "db"); err != nil {
		t.Fatal(err)
	}
	for i := range listed + 5 {
		spec := core.ContainerSpec{ID: fmt.Sprint("c", i), PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}
		if _, err := e.CreateContainer(context.Background(), "db", spec); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	defer e.Close()
	got, more, err := containersOf(e)
	if err != nil || len(got) != listed || more != 5 || got[0].Container != "c0" || len(got[0].Partitions) != 1 {
		t.Errorf("%d containers and %d more, %v", len(got), more, err)
	}
	if n := e.OpenContainers(); n != 0 {
		t.Errorf("%d containers were opened", n)
	}
}

// lasting is an engine that stays when what uses it is closed.
type lasting struct{ kv.Engine }

func (lasting) Close() error { return nil }
