package cli

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core"
)

// serverFor starts a server in memory.
func serverFor(t testing.TB, change func(*server.Config)) *server.Server {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if change != nil {
		change(&cfg)
	}
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems, err := s.Engine().Check(context.Background()); err != nil || len(problems) > 0 {
			t.Errorf("the store is not clean: %v %v", err, problems)
		}
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// endpoints are the flags that name a server.
func endpoints(s *server.Server) []string {
	return []string{"--endpoint", "http://" + s.Addr(server.NoSQL), "--mongo-endpoint", s.Addr(server.Mongo),
		"--table-endpoint", "http://" + s.Addr(server.Table) + "/" + s.Account()}
}

// ran runs the command line, and fails the test if the exit code isn't want.
func ran(t testing.TB, want int, args ...string) (out, errOut string) {
	t.Helper()
	if len(args) > 0 && args[0] == "import" && !slices.Contains(args, "--bad-rows") {
		args = append(args, "--bad-rows", filepath.Join(t.TempDir(), "bad"))
	}
	var o, e bytes.Buffer
	if code := run(args, &o, &e); code != want {
		var bad []byte
		if len(args) > 0 && args[0] == "import" {
			bad, _ = os.ReadFile(args[len(args)-1])
		}
		t.Fatalf("%q: exit %d, want %d: %s%s%.1000s", args, code, want, o.String(), e.String(), bad)
	}
	return o.String(), e.String()
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sortedLines returns the lines of a text in order.
func sortedLines(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}

// An import of JSON lines is what an export gives.
func TestImportExportLines(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	var text strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&text, `{"id":"i%d","city":"c%d","n":%d,"whole":1.0,"deep":{"_rid":"x","a":[null,true,"é"]}}`+"\n",
			i, i%7, i)
	}
	file := write(t, dir, "things.jsonl", text.String())
	at := endpoints(s)
	out, _ := ran(t, 0, append([]string{"import", file, "--db", "d", "--partition-key", "/city", "--state",
		filepath.Join(dir, "state")}, at...)...)
	if out != "2500 rows: 2500 written\n" {
		t.Errorf("import: %q", out)
	}
	back := filepath.Join(dir, "back.jsonl")
	ran(t, 0, append([]string{"export", back, "--db", "d", "--container", "things"}, at...)...)
	got, err := os.ReadFile(back)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sortedLines(string(got)), sortedLines(text.String())) {
		t.Errorf("%.500s", got)
	}
}

// documentsOf are the documents of a container in Extended JSON by MongoDB, sorted; with their fields sorted too if
// the format keeps no order.
func documentsOf(t testing.TB, s *server.Server, db, container string) []string {
	t.Helper()
	out, _ := ran(t, 0, append([]string{"export", "-", "--db", db, "--container", container, "--api", "mongo"},
		endpoints(s)...)...)
	return sortedLines(out)
}

// typed are documents with values of all kinds.
//
//go:embed testdata/typed.jsonl
var typed string

// What a format takes out goes in again as it was, with its kinds.
func TestRoundTripsOfDocuments(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	at := append(endpoints(s), "--db", "d")
	ran(t, 0, append([]string{"import", write(t, dir, "typed.jsonl", typed), "--api", "mongo", "--state",
		filepath.Join(dir, "state")}, at...)...)
	want := documentsOf(t, s, "d", "typed")
	if !slices.Equal(want, sortedLines(typed)) {
		t.Fatalf("the documents are %q", want)
	}
	for i, output := range []string{"out.jsonl", "out.jsonl.gz", "out.json", "out.csv", "out.archive", "out.archive.gz",
		"dump"} {
		file, container := filepath.Join(dir, output), fmt.Sprintf("back%d", i)
		args := []string{"export", file, "--container", "typed", "--api", "mongo"}
		if output == "dump" {
			args = append(args, "--format", "mongodump")
		}
		ran(t, 0, append(args, at...)...)
		ran(t, 0, append([]string{"import", file, "--container", container, "--api", "mongo", "--state",
			filepath.Join(dir, "state")}, at...)...)
		got := documentsOf(t, s, "d", container)
		if output == "out.csv" { // the order of fields is that of the columns
			got, want := sortedFields(got), sortedFields(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n%s\nwant\n%s", output, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		} else if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", output, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// sortedFields sorts the top-level fields of objects in JSON.
func sortedFields(lines []string) []string {
	var out []string
	for _, l := range lines {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(l), &fields); err != nil {
			panic(err)
		}
		b, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		out = append(out, string(b))
	}
	slices.Sort(out)
	return out
}

// Items of the NoSQL API in all formats that it has.
func TestRoundTripsOfItems(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	at := append(endpoints(s), "--db", "d", "--partition-key", "/pk", "--state", filepath.Join(dir, "state"))
	from := endpoints(s)
	ran(t, 0, append([]string{"import", write(t, dir, "items.jsonl", `{"id":"1","pk":"a","n":1,"f":1.0,"x":null}
{"id":"2","pk":5,"n":9007199254740993,"s":"","o":{"a":[1,2.5,"]"]}}
{"id":"3","n":"text","b":false,"_id":"own","é":"\r\n"}
`)}, at...)...)
	read := func(container string) []string {
		out, _ := ran(t, 0, append([]string{"export", "-", "--db", "d", "--container", container}, from...)...)
		return sortedFields(sortedLines(out))
	}
	want := read("items")
	for i, output := range []string{"out.jsonl.gz", "out.json", "out.csv"} {
		file, container := filepath.Join(dir, output), fmt.Sprintf("back%d", i)
		ran(t, 0, append([]string{"export", file, "--db", "d", "--container", "items"}, from...)...)
		ran(t, 0, append([]string{"import", file, "--container", container}, at...)...)
		if got := read(container); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", output, got, want)
		}
	}
}

// The indexes of a collection go with it.
func TestIndexesGoWithADump(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	at := append(endpoints(s), "--state", filepath.Join(dir, "state"))
	if err := os.MkdirAll(filepath.Join(dir, "in/shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "in/shop/c.metadata.json", `{"indexes":[{"v":2,"key":{"_id":1},"name":"_id_"},`+
		`{"v":2,"key":{"n":1},"name":"byN","unique":true}],"searchIndexes":[{"name":"near","type":"vectorSearch",`+
		`"definition":{"fields":[{"type":"vector","path":"v","numDimensions":3,"similarity":"cosine"}]}}]}`)
	write(t, dir, "in/shop/only.metadata.json", `{"searchIndexes":[{"name":"x","type":"vectorSearch","definition":`+
		`{"fields":[{"type":"vector","path":"v","numDimensions":2,"similarity":"euclidean"}]}}]}`)
	if err := os.WriteFile(filepath.Join(dir, "in/shop/c.bson"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ran(t, 0, append([]string{"import", filepath.Join(dir, "in")}, at...)...)
	for container, wants := range map[string][]string{
		"c":    {`"name":"byN"`, `"unique":true`, `"searchIndexes":[{"name":"near","type":"vectorSearch"`, `"cosine"`},
		"only": {`"searchIndexes":[{"name":"x"`, `"euclidean"`}} {
		out := filepath.Join(dir, "out", container)
		ran(t, 0, append([]string{"export", out, "--format", "mongodump", "--db", "shop", "--container", container},
			endpoints(s)...)...)
		text, err := os.ReadFile(filepath.Join(out, "shop", container+".metadata.json"))
		for _, want := range wants {
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s: want %s in %s (%v)", container, want, text, err)
			}
		}
	}
	file := filepath.Join(dir, "c.archive")
	ran(t, 0, append([]string{"export", file, "--db", "shop", "--container", "c"}, endpoints(s)...)...)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"name":"near"`) {
		t.Errorf("an archive without the search index: %v", err)
	}
}

// The path /id is the identity for every API, also where MongoDB's creates the container.
func TestImportPartitionedByID(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	file := write(t, dir, "v.csv", "~id,~label,name\nv1,person,Ann\nv2,person,Bob\n")
	out, errOut := ran(t, 0, append([]string{"import", file, "--format", "graphcsv", "--db", "d", "--container", "c",
		"--partition-key", "/id", "--state", filepath.Join(dir, "state")}, endpoints(s)...)...)
	if out != "2 rows: 2 written\n" {
		t.Errorf("%q %q", out, errOut)
	}
}

// Bad rows, renamed fields, existing items, and an import that writes nothing.
func TestImportOptions(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	at := append(endpoints(s), "--db", "d", "--container", "c", "--partition-key", "/pk", "--state",
		filepath.Join(dir, "state"), "--bad-rows", filepath.Join(dir, "bad"))
	rows := func() []string {
		out, _ := ran(t, 0, append([]string{"export", "-", "--db", "d", "--container", "c"}, endpoints(s)...)...)
		return sortedLines(out)
	}
	file := write(t, dir, "rows.jsonl", `{"name":"1","tenant":"a","n":1}
{"name":2,"tenant":"a"}
{"name":"3","tenant":"a","n":
{"name":"4","tenant":"b","n":4}
`)
	mapped := append([]string{"import", file, "--map", "name=id", "--map", "tenant=pk"}, at...)
	if out, _ := ran(t, 1, append(mapped, "--dry-run")...); out != "4 rows, nothing written (--dry-run), 2 bad\n" {
		t.Errorf("--dry-run: %q", out)
	}
	out, errOut := ran(t, 1, mapped...)
	if out != "4 rows: 2 written, 2 bad\n" || !strings.Contains(errOut, "2 rows are bad") {
		t.Errorf("import: %q %q", out, errOut)
	}
	bad, _ := os.ReadFile(filepath.Join(dir, "bad"))
	if want := `{"line":2,"reason":"the id is not a string","row":"{\"id\":2,\"pk\":\"a\"}"}
{"line":3,"reason":"the row is not one JSON object","row":"{\"name\":\"3\",\"tenant\":\"a\",\"n\":"}
`; string(bad) != want {
		t.Errorf("bad rows: %s", bad)
	}
	want := []string{`{"id":"1","pk":"a","n":1}`, `{"id":"4","pk":"b","n":4}`}
	if got := rows(); !slices.Equal(got, want) {
		t.Errorf("rows %q", got)
	}
	again := write(t, dir, "again.jsonl", `{"id":"1","pk":"a","n":100}`+"\n"+`{"id":"5","pk":"a"}`)
	if out, _ := ran(t, 0, append([]string{"import", again, "--existing", "keep"}, at...)...); out !=
		"2 rows: 1 written, 1 kept as they were\n" {
		t.Errorf("--existing keep: %q", out)
	}
	if out, _ := ran(t, 0, append([]string{"import", again}, at...)...); out != "2 rows: 2 written\n" {
		t.Errorf("--existing replace: %q", out)
	}
	want = []string{`{"id":"1","pk":"a","n":100}`, `{"id":"4","pk":"b","n":4}`, `{"id":"5","pk":"a"}`}
	if got := rows(); !slices.Equal(got, want) {
		t.Errorf("rows %q", got)
	}
	if _, errOut := ran(t, 1, append(mapped, "--restart", "--max-errors", "1")...); !strings.Contains(errOut,
		"too many rows are bad: 2; the last is line 3: the row is not one JSON object") {
		t.Errorf("--max-errors: %q", errOut)
	}
	noID := write(t, dir, "noid.jsonl", `{"pk":"z"}`+"\n"+`{"pk":"z"}`+"\n"+`{"pk":"y"}`)
	for range 2 { // rows without an id keep the one that they get
		ran(t, 0, append([]string{"import", noID, "--restart"}, at...)...)
		if got := rows(); len(got) != 6 {
			t.Errorf("rows %q", got)
		}
	}
}

// importedRows is the number of rows that the state of an import says are done.
func importedRows(t *testing.T, state string) int64 {
	t.Helper()
	s, err := transfer.Load(state)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		return 0
	}
	return s.Rows
}

// An import that is killed ten times, by a server that refuses what comes too fast, ends equal.
func TestImportKilledTenTimes(t *testing.T) {
	for _, api := range []string{"nosql", "mongo"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			s := serverFor(t, func(c *server.Config) { c.Throttle, c.PartitionRU = true, 1_000_000 })
			ctx, dir := context.Background(), t.TempDir()
			_, err := s.Engine().CreateDatabase(ctx, core.DatabaseSpec{ID: "d"})
			spec := core.ContainerSpec{ID: "killed", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}},
				Throughput: core.Throughput{Manual: 3000}} // so that all rows take 30 s
			if err == nil {
				_, err = s.Engine().CreateContainer(ctx, "d", spec)
			}
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			const rows = 16_000
			for i := range rows {
				switch {
				case i%1000 == 999:
					text.WriteString("bad\n")
				case i%10 == 5:
					fmt.Fprintf(&text, `{"pk":"p%d","n":%d,"text":"%0200d"}`+"\n", i%9, i, i) // without an id
				default:
					fmt.Fprintf(&text, `{"id":"i%d","_id":"i%d","pk":"p%d","n":%d,"text":"%0200d"}`+"\n", i, i, i%9, i,
						i)
				}
			}
			file, state := write(t, dir, "rows.jsonl", text.String()), filepath.Join(dir, "state")
			args := append([]string{"import", file, "--db", "d", "--api", api, "--partition-key", "/pk", "--state",
				state,
				"--bad-rows", filepath.Join(dir, "bad")}, endpoints(s)...)
			for i := range 10 {
				before := importedRows(t, state)
				cmd := exec.Command(binary(), append(args, "--container", "killed")...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if i%2 == 0 { // in the middle; else at any moment, also while it begins
					for end := time.Now().Add(time.Minute); importedRows(t, state) <= before; {
						if time.Sleep(time.Millisecond); time.Now().After(end) {
							t.Fatalf("import %d doesn't go on after %d rows", i, before)
						}
					}
				}
				time.Sleep(time.Duration(30*i) * time.Millisecond)
				_ = cmd.Process.Kill()
				if _ = cmd.Wait(); cmd.ProcessState.Exited() {
					t.Fatalf("import %d has ended before it was killed", i)
				}
			}
			spec.Throughput.Manual = 1_000_000
			if _, err := s.Engine().ReplaceContainer(ctx, "d", "killed", spec); err != nil {
				t.Fatal(err)
			}
			ran(t, 1, append(args, "--container", "killed")...)
			bad, _ := os.ReadFile(filepath.Join(dir, "bad"))
			if lines := strings.Count(string(bad), "\n"); lines != rows/1000 {
				t.Errorf("%d bad rows in the file", lines)
			}
			other := serverFor(t, nil)
			ran(t, 1, append([]string{"import", file, "--db", "d", "--api", api, "--partition-key", "/pk", "--state",
				state,
				"--container", "killed", "--bad-rows", filepath.Join(dir, "bad2")}, endpoints(other)...)...)
			got, want := documentsOf(t, s, "d", "killed"), documentsOf(t, other, "d", "killed")
			if len(want) != rows-rows/1000 || !slices.Equal(got, want) {
				t.Errorf("%d documents, want %d and the same", len(got), len(want))
			}
		})
	}
}

// A graph that Gremlin made goes out in each format of graphs, and in again as it was; GraphML and CSV keep no ids of
// properties.
func TestRoundTripsOfGraphs(t *testing.T) {
	s := serverFor(t, nil)
	if err := s.LoadDemo(context.Background()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := append(endpoints(s), "--db", "graphs")
	// What Gremlin's texts don't have: several values, dates, meta-properties, integer ids, empty texts.
	file := write(t, dir, "more.graphson", `{"id":{"@type":"g:Int32","@value":5},"label":"odd","properties":{"many":[`+
		`{"id":"p1","value":"a"},{"id":"p2","value":{"@type":"g:Int64","@value":2}}],"when":[{"id":"p3","value":`+
		`{"@type":"g:Date","@value":1000}}],"meta":[{"id":"p4","value":"\r;","properties":{"by":"x"}}],`+
		`"none":[{"id":"p5","value":""}]},"outE":{"self":[{"id":{"@type":"g:Int32","@value":5},"inV":`+
		`{"@type":"g:Int32","@value":5},"properties":{"d":{"@type":"g:Double","@value":1.0},"t":""}}]}}`+"\n")
	ran(t, 0, append([]string{"import", file, "--container", "g", "--state", filepath.Join(dir, "state")}, at...)...)
	want := documentsOf(t, s, "graphs", "g")
	if len(want) < 30 {
		t.Fatalf("%d elements", len(want))
	}
	withoutIDs := func(lines []string) []string {
		var out []string
		for _, l := range lines {
			out = append(out, propertyIDs.ReplaceAllString(l, "$2}"))
		}
		out = sortedFields(out)
		return out
	}
	for i, output := range []string{"g.graphson", "g.graphson.gz", "g.graphml", "folder"} {
		file, container := filepath.Join(dir, output), fmt.Sprintf("back%d", i)
		args := []string{"export", file, "--container", "g"}
		if output == "folder" {
			args = append(args, "--format", "graphcsv")
		}
		ran(t, 0, append(args, at...)...)
		ran(t, 0, append([]string{"import", file, "--container", container, "--state", filepath.Join(dir, "state")},
			at...)...)
		if i == 0 { // a graph that is partitioned by the id is made, and filled by the same run
			out, _ := ran(t, 0, append([]string{"import", file, "--container", "byid", "--partition-key", "/id",
				"--state", filepath.Join(dir, "state")}, at...)...)
			if !strings.Contains(out, fmt.Sprint(len(want), " written")) {
				t.Errorf("by id: %s", out)
			}
		}
		got, want := documentsOf(t, s, "graphs", container), want
		if i > 1 {
			got, want = withoutIDs(got), withoutIDs(want)
		}
		if !slices.Equal(got, want) {
			for j := range min(len(got), len(want)) {
				if got[j] != want[j] {
					t.Errorf("%s: %s\nwant %s", output, got[j], want[j])
					break
				}
			}
			t.Errorf("%s: %d elements, want %d and the same", output, len(got), len(want))
		}
	}
}

var propertyIDs = regexp.MustCompile(`,"id":("[^"]*"|\{[^}]*\})(,"_meta":\{[^}]*\})?\}`)

// A table goes out in each format of tables, and in again with its types.
func TestRoundTripsOfTables(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	at := endpoints(s)
	entities := `[{"PartitionKey":"a'b","RowKey":"1","When@odata.type":"Edm.DateTime",` +
		`"When":"2026-01-02T03:04:05.1234567Z",` +
		`"Long@odata.type":"Edm.Int64","Long":"9007199254740993","odata.etag":"x"},
{"PartitionKey":"a'b","RowKey":"2 é","Int":5,"Half":1.5,"Whole":1.0,"Text":"","Yes":true},
{"PartitionKey":"","RowKey":"","Id@odata.type":"Edm.Guid","Id":"00112233-4455-6677-8899-aabbccddeeff",` +
		`"Bin@odata.type":"Edm.Binary","Bin":"AAEC","Text":"x, \"y\"\nz"},
{"PartitionKey":"p","RowKey":"3","Nan@odata.type":"Edm.Double","Nan":"NaN"}]`
	ran(t, 0, append([]string{"import", write(t, dir, "things.json", entities), "--container", "things", "--state",
		filepath.Join(dir, "state")}, at...)...)
	read := func(table string) []string {
		out, _ := ran(t, 0, append([]string{"export", "-", "--format", "tablejson", "--container", table}, at...)...)
		var lines []string
		for l := range strings.Lines(out) {
			if l = strings.TrimRight(l, ",\n"); strings.HasPrefix(l, "{") {
				lines = append(lines, l)
			}
		}
		return sortedFields(lines)
	}
	want := read("things")
	if len(want) != 4 || !strings.Contains(strings.Join(want, ""), `"2026-01-02T03:04:05.1234567Z"`) {
		t.Fatalf("%q", want)
	}
	for i, output := range []string{"t.table.json", "t.table.csv"} {
		file, table := filepath.Join(dir, output), fmt.Sprintf("back%d", i)
		ran(t, 0, append([]string{"export", file, "--container", "things"}, at...)...)
		ran(t, 0, append([]string{"import", file, "--format", []string{"tablejson", "tablecsv"}[i], "--container",
			table,
			"--state", filepath.Join(dir, "state")}, at...)...)
		if got := read(table); !slices.Equal(got, want) {
			t.Errorf("%s: %q\nwant %q", output, got, want)
		}
	}
	again := write(t, dir, "again.json",
		`[{"PartitionKey":"p","RowKey":"3","odata.x":1},{"PartitionKey":"p","RowKey":"4"},
{"PartitionKey":"p"}]`)
	out, _ := ran(t, 1, append([]string{"import", again, "--container", "things", "--existing", "keep"}, at...)...)
	if out != "3 rows: 1 written, 1 kept as they were, 1 bad\n" {
		t.Errorf("--existing keep: %q", out)
	}
}
