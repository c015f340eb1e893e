package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/formats"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/progress"
)

// importCmd writes files to a running server.
type importCmd struct {
	remote
	DB, Container string
	Format, API   string
	Map           []string
	PartitionKey  []string
	Existing      string
	Types         bool
	Nested        string
	DryRun, JSON  bool
	Restart       bool
	MaxErrors     int64
	BadRows       string
	State         string
	Workers       int
	Input         string

	stdin io.Reader
}

func (c *importCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "import FILE|DIR|-", Short: "Write data from files to a running server.",
		Args: only(func(text string) error { c.Input = text; return nil }),
		RunE: runs(func() error { return c.run(s) })}
	f := cmd.Flags()
	c.remote.flags(f)
	f.StringVar(&c.DB, "db", "", "`DATABASE` to write to; the default is what the input says.")
	f.StringVar(&c.Container, "container", "", "`CONTAINER` to write to; the default is what the input says, or the "+
		"name of the file.")
	f.StringVar(&c.Format, "format", "", "`FORMAT` of the files; the default is recognised: "+formatNames()+".")
	f.Var(oneOf(&c.API, "", formats.NoSQL, formats.Mongo, ""), "api", "API to write rows by that may "+
		"be items or documents: nosql or mongo; the default follows from the format.")
	f.StringArrayVar(&c.Map, "map", nil, "Rename a field, or with slashes a container: `OLD=NEW`. Repeatable.")
	f.StringArrayVar(&c.PartitionKey, "partition-key", nil, "`PATH` of the partition key of a container that is "+
		"created because it is absent. Repeatable.")
	f.Var(oneOf(&c.Existing, "replace", "replace", "keep"), "existing", "What becomes of items that exist: replace or "+
		"keep.")
	f.BoolVar(&c.Types, "types", true, "CSV: cells that look like numbers or booleans are such, where the header says "+
		"nothing.")
	f.StringVar(&c.Nested, "nested", "", "CSV: `SEPARATOR` of the names of nested fields in the header.")
	f.BoolVar(&c.DryRun, "dry-run", false, "Read and check everything, write nothing.")
	f.Int64Var(&c.MaxErrors, "max-errors", 100, "End when more rows than this are bad.")
	f.StringVar(&c.BadRows, "bad-rows", "", "`FILE` for rows that can't be imported, with line and reason.")
	f.StringVar(&c.State, "state", "", "`FILE` from which an import that was ended goes on.")
	f.BoolVar(&c.Restart, "restart", false, "Begin at the first row, whatever an earlier import has done.")
	f.IntVar(&c.Workers, "workers", 4, "Requests that are sent at once.")
	f.BoolVar(&c.JSON, "json", false, "Print the result as JSON.")
	return cmd
}

func formatNames() string {
	var names []string
	for _, f := range formats.All {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// run imports until the end, a signal, or an error.
func (c *importCmd) run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := c.do(ctx, s)
	if r == nil {
		return err
	}
	if c.JSON {
		err = errors.Join(err, json.NewEncoder(s.out).Encode(r))
	} else if err == nil || r.Written+r.Skipped+r.Kept+r.Bad > 0 {
		err = errors.Join(err, c.print(s.out, r))
	}
	if ctx.Err() != nil && c.State != "" {
		return errors.New("interrupted; the same command goes on")
	}
	if err == nil && r.Bad > 0 {
		are := "are"
		if r.Bad == 1 {
			are = "is"
		}
		err = fmt.Errorf("%s %s bad: see %s", counted(r.Bad, "row"), are, c.BadRows)
	}
	return err
}

func (c *importCmd) print(w io.Writer, r *transfer.Report) error {
	text := fmt.Sprintf("%s: %d written", counted(r.Rows, "row"), r.Written)
	if c.DryRun {
		text = counted(r.Rows, "row") + ", nothing written (--dry-run)"
	}
	for _, n := range []struct {
		n    int64
		what string
	}{{r.Skipped, "done before"}, {r.Kept, "kept as they were"}, {r.Bad, "bad"}} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
		}
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// do imports. It returns no report if nothing was begun.
func (c *importCmd) do(ctx context.Context, s *streams) (*transfer.Report, error) {
	srv, err := c.server()
	if err != nil {
		return nil, err
	}
	names, err := transfer.ParseNames(c.Map)
	if err != nil {
		return nil, err
	}
	var format *formats.Format
	if c.Format != "" { // before something waits for the input
		if format, err = formats.Named(c.Format); err != nil {
			return nil, err
		}
	}
	if c.stdin == nil {
		c.stdin = os.Stdin
	}
	in, err := transfer.OpenInput(c.Input, c.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if format == nil {
		if format, err = formats.Of(in); err != nil {
			return nil, err
		}
	}
	o := &formats.Options{Types: c.Types, Nested: c.Nested}
	if o.Door, err = c.doorOf(format); err != nil {
		return nil, err
	}
	im := &transfer.Import{Keep: c.Existing == "keep", Dry: c.DryRun, MaxBad: c.MaxErrors, Workers: c.Workers,
		Change: names.Change}
	t := &targets{cmd: c, srv: srv, door: o.Door, names: names, in: in}
	im.Open = t.open
	if err := c.resume(im, srv, format, o.Door); err != nil {
		return nil, err
	}
	reader, err := formats.Open(in, format, o)
	if err != nil {
		return nil, err
	}
	if d, ok := reader.(transfer.Defined); ok && !c.DryRun {
		if err := t.define(ctx, d.Definitions()); err != nil {
			return nil, errors.Join(err, reader.Close())
		}
	}
	b := progress.New(s.errOut)
	b.Task("importing", true)
	im.Progress = func(int64) { b.Set(in.Done(), in.Size) }
	report, err := im.Run(ctx, reader)
	b.Clear()
	err = errors.Join(err, reader.Close(), t.close())
	if err == nil && im.State != "" {
		if e := os.Remove(im.State); !errors.Is(e, os.ErrNotExist) {
			err = e
		}
	}
	return &report, err
}

// doorOf returns the API by which rows of a format are written.
func (c *importCmd) doorOf(format *formats.Format) (string, error) {
	switch {
	case c.API == "":
		return format.Door, nil
	case c.API != format.Door && (format.Door == formats.Graph || format.Door == formats.Table || format.Typed &&
		c.API != formats.Mongo):
		return "", fmt.Errorf("--api %s: rows of the format %s are written by another API", c.API, format.Name)
	}
	return c.API, nil
}

// resume finds the state of an earlier import of the same input to the same place.
func (c *importCmd) resume(im *transfer.Import, srv *door.Server, format *formats.Format, api string) error {
	path := c.Input
	if abs, err := filepath.Abs(path); err == nil && path != "-" {
		path = abs
	}
	job, err := json.Marshal(map[string]any{"input": path, "nosql": srv.NoSQL, "mongo": srv.Mongo, "table": srv.Table,
		"account": srv.Account, "db": c.DB, "container": c.Container, "format": format.Name, "api": api, "map": c.Map,
		"types": c.Types, "nested": c.Nested})
	if err != nil {
		return err
	}
	h := fnv.New64a()
	_, _ = h.Write(job)
	im.Job = transfer.State{Job: fmt.Sprintf("%016x", h.Sum64()), Input: path}
	base := fmt.Sprintf(".orrery-import-%s", im.Job.Job)
	if c.BadRows == "" {
		c.BadRows = strings.TrimPrefix(base, ".") + ".bad.jsonl"
	}
	im.BadFile = c.BadRows
	if c.Input == "-" && c.State == "" || c.DryRun {
		return nil // what was read of a stream can't be read again
	}
	if c.State == "" {
		c.State = base + ".json"
	}
	im.State = c.State
	if c.Restart {
		return nil
	}
	im.Start, err = transfer.Load(c.State)
	if im.Start != nil && im.Start.Rows == 0 {
		im.Start = nil // nothing is done that could be lost
	}
	if err == nil && im.Start != nil && im.Start.Job != im.Job.Job {
		return fmt.Errorf("%s is the state of another import, of %s: name another file, or give --restart", c.State,
			im.Start.Input)
	}
	return err
}

// targets opens the containers that an input names.
type targets struct {
	cmd   *importCmd
	srv   *door.Server
	door  string
	names *transfer.Names
	in    *transfer.Input
	made  []io.Closer
}

// place returns database and container for a name of the input.
func (t *targets) place(name string) (db, container string, err error) {
	name = t.names.Place(name)
	db, container, ok := strings.Cut(name, "/")
	if !ok {
		db, container = "", name
	}
	if container == "" && t.in.Path != "-" && !t.in.Dir() {
		container = transfer.Base(t.in.Path)
	}
	if t.cmd.DB != "" {
		db = t.cmd.DB
	}
	if t.cmd.Container != "" {
		container = t.cmd.Container
	}
	switch {
	case db == "" && t.door != formats.Table:
		return "", "", errors.New("the input names no database: give --db")
	case container == "":
		return "", "", errors.New("the input names no container: give --container")
	case strings.ContainsAny(db, "/\\\x00") || strings.ContainsAny(container, "/\\\x00") || db == ".." ||
		container == "..":
		return "", "", fmt.Errorf("the input names the container %.100q of the database %.100q, which is refused",
			container, db)
	}
	return db, container, nil
}

func (t *targets) open(ctx context.Context, name string) (transfer.Target, error) {
	db, container, err := t.place(name)
	if err != nil {
		return nil, err
	}
	switch t.door {
	case formats.Mongo:
		m, err := door.OpenMongo(ctx, t.srv, db, container, t.cmd.PartitionKey)
		if err != nil {
			return nil, err
		}
		t.made = append(t.made, m)
		return m, nil
	case formats.Graph:
		g, err := door.OpenGraph(ctx, t.srv, db, container, t.cmd.PartitionKey)
		if err != nil {
			return nil, err
		}
		t.made = append(t.made, g)
		return g, nil
	case formats.Table:
		return door.OpenTable(ctx, t.srv, container, !t.cmd.DryRun)
	}
	return door.OpenNoSQL(ctx, t.srv, db, container, t.cmd.PartitionKey)
}

// define creates the indexes that the input has.
func (t *targets) define(ctx context.Context, defs []transfer.Definition) error {
	for _, d := range defs {
		if t.door != formats.Mongo || len(d.Indexes)+len(d.Search) == 0 {
			continue
		}
		to, err := t.open(ctx, d.Place)
		if err == nil {
			err = to.(*door.Mongo).CreateIndexes(ctx, d.Indexes)
		}
		if err == nil {
			err = to.(*door.Mongo).CreateSearchIndexes(ctx, d.Search)
		}
		if err != nil {
			return fmt.Errorf("the indexes of %s: %w", d.Place, err)
		}
	}
	return nil
}

func (t *targets) close() (err error) {
	for _, c := range t.made {
		err = errors.Join(err, c.Close())
	}
	return err
}
