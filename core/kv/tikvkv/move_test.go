package tikvkv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/move"
	"github.com/orrerydb/orrery/core/value"
)

// stayOpen is an engine whose store outlives it.
type stayOpen struct{ kv.Engine }

func (stayOpen) Close() error { return nil }

// A store moves to a cluster and back, with large values, which a cluster stores in parts.
func TestMove(t *testing.T) {
	m := newMock(t, []byte("or/main/d\x20\x00\x00\x00\x01\x00\x00\x00\x02"))
	moveThereAndBack(t, m.open("main"))
}

func TestMoveOnACluster(t *testing.T) { moveThereAndBack(t, onCluster(t)(t)) }

func moveThereAndBack(t *testing.T, cluster kv.Engine) {
	from, to := stayOpen{memkv.New()}, stayOpen{memkv.New()}
	at := stayOpen{cluster}
	const items = 50
	serve(t, from, func(e *core.Engine) {
		if _, err := e.EnsureDatabase(bg, "db"); err != nil {
			t.Fatal(err)
		}
		c, err := e.CreateContainer(bg, "db", core.ContainerSpec{ID: "c",
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range items {
			create(t, c, i)
		}
	})
	var etags [2]string
	for i, way := range [][2]kv.Engine{{from, at}, {at, to}} {
		r, err := move.Run(bg, way[0], way[1], move.Options{From: fmt.Sprint(i), To: fmt.Sprint(i + 1), Part: 1 << 20})
		if err != nil || r.Items != int64(items+i) {
			t.Fatal(r, err)
		}
		serve(t, way[1], func(e *core.Engine) {
			c, err := e.Container("db", "c")
			if err != nil {
				t.Fatal(err)
			}
			it, err := c.Read(bg, core.PartitionKey{value.StringOf("p3")}, value.StringOf("3"))
			if err != nil || len(it.Doc) < 400<<10 {
				t.Fatal(it, err)
			}
			etags[i] = it.ETag()
			create(t, c, items+i)
		})
	}
	if etags[0] != etags[1] {
		t.Errorf("the etags of an item are %q", etags)
	}
}

// serve calls f with the core on an engine, and checks the store.
func serve(t *testing.T, eng kv.Engine, f func(e *core.Engine)) {
	t.Helper()
	e, err := core.Open(bg, eng, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	f(e)
	if problems, err := e.Check(bg); len(problems) > 0 || err != nil {
		t.Error(problems, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// create adds an item. Every third one is large.
func create(t *testing.T, c *core.Container, i int) {
	t.Helper()
	size := 10
	if i%3 == 0 {
		size = 400 << 10
	}
	d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p%d","t":%q}`, i, i%5, strings.Repeat("x", size)),
		doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d}); err != nil {
		t.Fatal(err)
	}
}
