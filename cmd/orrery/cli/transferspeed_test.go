package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
)

// BenchmarkImport compares an import with a bulk load by the same requests, which are prepared before: the loss is what
// reading the file costs. Both have four requests in flight. The export's rate is shown too.
func BenchmarkImport(b *testing.B) {
	const items = 100_000
	for _, api := range []string{"nosql", "mongo"} {
		b.Run(api, func(b *testing.B) {
			ctx, dir := context.Background(), b.TempDir()
			s := serverFor(b, func(c *server.Config) { c.Memory, c.Data = false, filepath.Join(dir, "data") })
			text := speedRows(items)
			file := write(b, dir, "rows.jsonl", text)
			for n := range b.N {
				args := append([]string{"--db", "d", "--api", api, "--container", fmt.Sprint("c", n),
					"--partition-key", "/pk", "--state", filepath.Join(dir, "state")}, endpoints(s)...)
				loaded := bulk(b, ctx, s, api, fmt.Sprint("bulk", n), text)
				start := time.Now()
				ran(b, 0, append([]string{"import", file}, args...)...)
				imported := time.Since(start)
				out := filepath.Join(dir, fmt.Sprintf("out%d.jsonl", n))
				start = time.Now()
				ran(b, 0, append([]string{"export", out, "--db", "d", "--api", api, "--container", fmt.Sprint("c", n)},
					endpoints(s)...)...)
				exported := time.Since(start)
				if api == "mongo" { // the bytes of a dump go in as they are
					dump := filepath.Join(dir, fmt.Sprintf("dump%d", n))
					ran(b, 0, append([]string{"export", dump, "--format", "mongodump", "--db", "d", "--container",
						fmt.Sprint("c", n)}, endpoints(s)...)...)
					start = time.Now()
					ran(b, 0, append([]string{"import", dump, "--db", "d", "--container", fmt.Sprint("d", n),
						"--partition-key", "/pk", "--state", filepath.Join(dir, "state")}, endpoints(s)...)...)
					b.ReportMetric(100*loaded.Seconds()/time.Since(start).Seconds(), "%dumpofbulk")
				}
				b.ReportMetric(items/loaded.Seconds(), "bulk/s")
				b.ReportMetric(items/imported.Seconds(), "import/s")
				b.ReportMetric(100*loaded.Seconds()/imported.Seconds(), "%ofbulk")
				b.ReportMetric(items/exported.Seconds(), "export/s")
			}
		})
	}
}

// speedRows returns rows of 1 KB as JSON lines.
func speedRows(items int) string {
	var text strings.Builder
	for i := range items {
		fmt.Fprintf(&text, `{"id":"item-%07d","_id":"item-%07d","pk":"p%d","n":%d,`+
			`"when":"2026-01-02T03:04:05Z",`+
			`"tags":["a","b","c%d"],"half":%d.5,"text":"%0800d"}`+"\n", i, i, i%100, i, i%50, i, i)
	}
	return text.String()
}

// bulk loads rows by requests that are prepared before, and returns the time.
func bulk(b *testing.B, ctx context.Context, s *server.Server, api, container, text string) time.Duration {
	b.Helper()
	srv := &door.Server{NoSQL: "http://" + s.Addr(server.NoSQL), Mongo: s.Addr(server.Mongo), Account: s.Account(),
		Key: s.Key()}
	var to transfer.Target
	var err error
	if api == "mongo" {
		to, err = door.OpenMongo(ctx, srv, "d", container, []string{"/pk"})
	} else {
		to, err = door.OpenNoSQL(ctx, srv, "d", container, []string{"/pk"})
	}
	if err != nil {
		b.Fatal(err)
	}
	var batches []*transfer.Batch
	open := &transfer.Batch{}
	var n int64
	for line := range strings.Lines(text) {
		row := &transfer.Row{Text: []byte(strings.TrimSpace(line))}
		if api == "mongo" {
			d, err := doc.FromExtJSON(nil, row.Text)
			if err != nil {
				b.Fatal(err)
			}
			row = &transfer.Row{Doc: d}
		}
		if err := to.Prepare(open, row, n); err != nil {
			b.Fatal(err)
		}
		if n++; to.Full(open) {
			batches, open = append(batches, open), &transfer.Batch{}
		}
	}
	if len(open.Rows) > 0 {
		batches = append(batches, open)
	}
	start := time.Now()
	work := make(chan *transfer.Batch)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for one := range work {
				rows := make([]int, len(one.Rows))
				for i := range rows {
					rows[i] = i
				}
				_, err := to.Write(ctx, one, rows, false, func(_ int, v transfer.Verdict, why string) {
					if v != transfer.Written {
						b.Error(v, why)
					}
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, one := range batches {
		work <- one
	}
	close(work)
	wait.Wait()
	return time.Since(start)
}

// BenchmarkExport compares an export with its floor in the same run: the same pages, read and thrown away.
func BenchmarkExport(b *testing.B) {
	const items = 100_000
	for _, api := range []string{"nosql", "mongo"} {
		b.Run(api, func(b *testing.B) {
			ctx, dir := context.Background(), b.TempDir()
			s := serverFor(b, func(c *server.Config) { c.Memory, c.Data = false, filepath.Join(dir, "data") })
			bulk(b, ctx, s, api, "c", speedRows(items))
			out := filepath.Join(dir, "out.jsonl")
			var export, floor time.Duration
			for b.Loop() {
				if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
					b.Fatal(err)
				}
				start := time.Now()
				ran(b, 0, append([]string{"export", out, "--db", "d", "--api", api, "--container", "c"},
					endpoints(s)...)...)
				export += time.Since(start)
				start = time.Now()
				n, err := readPages(ctx, s, api)
				if err != nil || n < items*900 {
					b.Fatal(n, err)
				}
				floor += time.Since(start)
			}
			b.ReportMetric(items*float64(b.N)/export.Seconds(), "export/s")
			b.ReportMetric(items*float64(b.N)/floor.Seconds(), "floor/s")
			b.ReportMetric(100*floor.Seconds()/export.Seconds(), "%offloor")
		})
	}
}

// readPages reads the pages of a container and returns their bytes.
func readPages(ctx context.Context, s *server.Server, api string) (n int64, err error) {
	srv := &door.Server{NoSQL: "http://" + s.Addr(server.NoSQL), Mongo: s.Addr(server.Mongo), Account: s.Account(),
		Key: s.Key()}
	page := func(b []byte) error {
		n += int64(len(b))
		return nil
	}
	if api == "mongo" {
		m, err := door.OpenMongo(ctx, srv, "d", "c", nil)
		if err != nil {
			return 0, err
		}
		return n, errors.Join(m.Pages(ctx, bson.Empty, bson.Empty, page), m.Close())
	}
	c, err := door.OpenNoSQL(ctx, srv, "d", "c", nil)
	if err != nil {
		return 0, err
	}
	return n, c.Pages(ctx, page)
}
