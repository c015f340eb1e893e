package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/formats"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/progress"
)

// exportCmd writes a container of a running server to a file.
type exportCmd struct {
	remote
	DB, Container string
	Format, API   string
	JSON          bool
	Output        string
}

func (c *exportCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "export FILE|DIR|-", Short: "Write a container of a running server to a file.",
		Args: only(func(text string) error { c.Output = text; return nil }),
		RunE: runs(func() error { return c.run(s) })}
	f := cmd.Flags()
	c.remote.flags(f)
	f.StringVar(&c.DB, "db", "", "`DATABASE`.")
	f.StringVar(&c.Container, "container", "", "`CONTAINER`.")
	f.StringVar(&c.Format, "format", "", "`FORMAT` of the file; the default follows from its name, else jsonl: "+
		formatNames()+".")
	f.Var(oneOf(&c.API, "", formats.NoSQL, formats.Mongo, ""), "api", "API to read items or documents by: "+
		"nosql or mongo; the default follows from the format.")
	f.BoolVar(&c.JSON, "json", false, "Print the result as JSON, on the error stream.")
	return require(cmd, "container")
}

// source is a container that is exported.
type source interface {
	transfer.Source
	Close() error
}

func (c *exportCmd) run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	n, err := c.do(ctx, s)
	if ctx.Err() != nil {
		return errors.New("interrupted: what was written is not complete")
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.errOut).Encode(map[string]int64{"rows": n})
	}
	_, err = fmt.Fprintln(s.errOut, counted(n, "row"))
	return err
}

// format returns the format of the output.
func (c *exportCmd) format() (*formats.Format, error) {
	name := c.Format
	if name == "" {
		if f := formats.BySuffix(c.Output); f != nil {
			return f, nil
		}
		name = "jsonl"
	}
	return formats.Named(name)
}

func (c *exportCmd) do(ctx context.Context, s *streams) (n int64, err error) {
	srv, err := c.server()
	if err != nil {
		return 0, err
	}
	format, err := c.format()
	if err != nil {
		return 0, err
	}
	api := c.API
	if api == "" {
		api = format.Door
	}
	if api != format.Door && (format.Door == formats.Graph || format.Door == formats.Table || format.Typed &&
		api != formats.Mongo) {
		return 0, fmt.Errorf("--api %s: rows of the format %s are read by another API", api, format.Name)
	}
	src, err := c.open(ctx, srv, api, format.Beside)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	total, err := src.Size(ctx)
	if err != nil {
		return 0, err
	}
	o := &formats.Output{Options: &formats.Options{Door: api, Place: c.DB + "/" + c.Container}, Path: c.Output,
		To: s.out}
	w, err := format.Write(o)
	if err != nil {
		return 0, err
	}
	if d, ok := w.(transfer.Defines); ok {
		if m, ok := src.(*door.Mongo); ok { // not for a graph: its indexes are the server's
			def, err := m.Definition(ctx)
			if err == nil {
				err = d.Define(def)
			}
			if err != nil {
				return 0, err
			}
		}
	}
	b := progress.New(s.errOut)
	b.Task("exporting", false)
	err = src.Rows(ctx, func(r *transfer.Row) error {
		if n++; n%512 == 0 {
			b.Set(n, max(total, n))
		}
		return w.Add(r)
	})
	b.Clear()
	if err == nil {
		err = w.Close() // else the file keeps the name of one that isn't complete
	}
	return n, err
}

func (c *exportCmd) open(ctx context.Context, srv *door.Server, api string, beside bool) (source, error) {
	if c.DB == "" && api != formats.Table {
		return nil, errors.New("give --db")
	}
	switch api {
	case formats.Mongo:
		return door.OpenMongo(ctx, srv, c.DB, c.Container, nil)
	case formats.Graph:
		g, err := door.OpenGraph(ctx, srv, c.DB, c.Container, nil)
		if err == nil {
			g.Beside = beside
		}
		return g, err
	case formats.Table:
		return door.OpenTable(ctx, srv, c.Container, false)
	}
	n, err := door.OpenNoSQL(ctx, srv, c.DB, c.Container, nil)
	if err != nil {
		return nil, err
	}
	return unclosed{n}, nil
}

// unclosed is a source without anything to close.
type unclosed struct{ transfer.Source }

// Close does nothing.
func (unclosed) Close() error { return nil }
