package run_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/graphson"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// BenchmarkGraph measures typical operations without the socket, on vertices with 16 properties and three edges each.
// Results are written as the service writes them. With a partition key, which the look-ups don't name, a partition has
// 100 vertices. The engine is in memory; with disk it is a directory, without fsync.
func BenchmarkGraph(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchGraph(b, memkv.New(), "empty") })
	b.Run("keyed", func(b *testing.B) { benchGraph(b, memkv.New(), "partitioned") })
	b.Run("disk", func(b *testing.B) {
		eng, err := pebblekv.Open(b.TempDir(),
			pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned, Kept: core.GotSingly})
		if err != nil {
			b.Fatal(err)
		}
		benchGraph(b, eng, "empty")
	})
}

func benchGraph(b *testing.B, eng kv.Engine, name string) {
	_, g := coreGraphOn(b, eng, name, clock.Fake(frozen), core.ContainerSpec{})
	ctx := context.Background()
	var out []byte
	run := func(b *testing.B, script string, binds map[string]any) {
		n := 0
		_, err := run.Run(ctx, g, &message.Request{Script: script, Bindings: binds}, func(v any, bulk int64) error {
			n++
			var err error
			out, err = graphson.Codec{Version: 1}.AppendItem(out[:0], v, bulk, message.Options{})
			return err
		})
		if err != nil || n == 0 {
			b.Fatalf("%s: %d results, %v", script, n, err)
		}
	}
	const vertices = 300
	add := "g.addV('order').property('id',id).property('region',region)"
	binds := map[string]any{"region": "none"}
	for i := range 16 {
		add += ".property('p" + strconv.Itoa(i) + "',p" + strconv.Itoa(i) + ")"
		binds["p"+strconv.Itoa(i)] = "value of some length " + strconv.Itoa(i)
	}
	vid := func(i int) string { return "v" + strconv.Itoa(i) }
	for i := range vertices {
		binds["id"], binds["region"] = vid(i), "r"+strconv.Itoa(i/100)
		run(b, add, binds)
	}
	edge := func(a, c string) {
		run(b, "g.V(a).addE('next').to(g.V(b))", map[string]any{"a": a, "b": c})
	}
	for i := range vertices {
		for k := range 3 {
			edge(vid(i), vid((i*3+k+1)%vertices))
		}
	}
	read := func(script string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				run(b, script, map[string]any{"vid": vid(i % vertices)})
			}
		}
	}
	b.Run("V", read("g.V(vid)"))
	b.Run("out", read("g.V(vid).out()"))
	b.Run("out2", read("g.V(vid).out().out()"))
	b.Run("repeat", read("g.V(vid).repeat(out()).times(3).count()"))
	n := 0
	b.Run("addV", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n++
			binds["id"] = "n" + strconv.Itoa(n)
			run(b, add, binds)
		}
	})
	b.Run("addE", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n++
			edge(vid(n%vertices), vid((n+1)%vertices))
		}
	})
}

// BenchmarkCollect measures steps that collect, on 100 and 2,000 vertices. All fit into memory.
func BenchmarkCollect(b *testing.B) {
	for _, n := range []int{100, 2000} {
		_, g := coreGraph(b, "empty")
		manyVertices(b, g, n)
		for _, script := range []string{"g.V()", "g.V().order().by('text')", "g.V().order().by('text').limit(10)",
			"g.V().order().by(values('text'))", "g.V().group().by('text')", "g.V().groupCount().by('text')",
			"g.V().dedup().by('text')"} {
			b.Run(script+"/"+strconv.Itoa(n), func(b *testing.B) {
				b.ReportAllocs()
				ctx, req := context.Background(), &message.Request{Script: script}
				for b.Loop() {
					if _, err := run.Run(ctx, g, req, func(any, int64) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkShortPage measures the first elements in creation order of a graph with 2,000.
func BenchmarkShortPage(b *testing.B) {
	_, g := coreGraph(b, "empty")
	manyVertices(b, g, 2000)
	for _, script := range []string{"g.V().limit(10)", "g.V().has('text','is 3').limit(10)", "g.V().next()", "g.V()"} {
		b.Run(script, func(b *testing.B) {
			b.ReportAllocs()
			req := &message.Request{Script: script}
			for b.Loop() {
				if _, err := run.Run(context.Background(), g, req, func(any, int64) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
