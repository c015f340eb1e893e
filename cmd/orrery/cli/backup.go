package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/progress"
)

// backupCmd has a running server make a backup.
type backupCmd struct {
	To       string
	Data     string
	Endpoint string
	keyFlags
	JSON bool
}

func (c *backupCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "backup", Short: "Back up the store of a running server.", Args: noArguments,
		RunE: runs(func() error { return c.run(s) })}
	f := cmd.Flags()
	f.StringVar(&c.To, "to", "", "`DIR` of backups, on the server's machine; made when absent. Each backup gets a "+
		"directory of its own in it.")
	f.StringVar(&c.Data, "data", "data", "Data `DIR` of the server, which says where it is and its key.")
	urlVar(f, &c.Endpoint, "endpoint", "", "`URL` of the server's admin port, in place of --data; with --key or "+
		"--key-file.")
	c.keyFlags.flags(f)
	f.BoolVar(&c.JSON, "json", false, "Print one JSON document instead of a line.")
	return require(cmd, "to")
}

func (c *backupCmd) run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	admin, key, err := c.server()
	if err != nil {
		return err
	}
	bar := progress.New(s.errOut)
	bar.Task("backup", true)
	b, err := server.AskForBackup(ctx, admin, key, c.To, bar.Set)
	bar.Clear()
	if ctx.Err() != nil {
		return errors.New("cancelled; the next backup continues with the files that it has copied")
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, b)
	}
	_, err = fmt.Fprintf(s.out, "%s: %d files with %s; %s copied, %s linked, %s shared with the backup before\n",
		b.Path, b.Files, size(b.Bytes), size(b.Copied), size(b.Linked), size(b.Shared))
	return err
}

// server returns the admin address and the key of the server that makes the backup.
func (c *backupCmd) server() (admin, key string, err error) {
	if c.Endpoint != "" {
		if !filepath.IsAbs(c.To) {
			return "", "", fmt.Errorf("--to %s: want an absolute path on the server's machine with --endpoint", c.To)
		}
		key, err = c.key()
		return c.Endpoint, key, err
	}
	if c.To, err = filepath.Abs(c.To); err != nil {
		return "", "", err
	}
	conns, err := server.ReadConnections(c.Data)
	if err != nil {
		return "", "", fmt.Errorf("%w; to back up a stopped server, copy its whole data directory",
			err)
	}
	if conns.Admin == nil {
		return "", "", fmt.Errorf("the server of %s has no admin port (--admin-addr off), which makes backups", c.Data)
	}
	return conns.Admin.Endpoint, conns.Key, nil
}

// restoreCmd makes a store from a backup.
type restoreCmd struct {
	From directory
	Data string
	List bool
	JSON bool
}

func (c *restoreCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "restore", Short: "Create a store from a backup.", Args: noArguments,
		RunE: runs(func() error { return c.run(s) })}
	f := cmd.Flags()
	f.Var(&c.From, "from", "`BACKUP`, or a directory of backups: the newest of them is taken.")
	f.StringVar(&c.Data, "data", "", "New data `DIR`; made when absent, otherwise empty.")
	f.BoolVar(&c.List, "list", false, "List the backups in the directory instead.")
	f.BoolVar(&c.JSON, "json", false, "Print one JSON document instead of lines.")
	return require(cmd, "from")
}

func (c *restoreCmd) run(s *streams) error {
	if c.List {
		return c.list(s)
	}
	if c.Data == "" {
		return errors.New("give --data DIR, or --list")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bar := progress.New(s.errOut)
	r, err := server.Restore(ctx, string(c.From), c.Data, bar)
	bar.Clear()
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, r)
	}
	_, err = fmt.Fprintf(s.out, "%s: the backup %s is restored and clean, %d containers with %d items\n",
		r.Data, r.Backup, r.Containers, r.Items)
	return err
}

func (c *restoreCmd) list(s *streams) error {
	all, err := server.ListBackups(string(c.From))
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, all)
	}
	for _, b := range all {
		what := b.What
		if b.Whole {
			what = fmt.Sprintf("%d files, %s", b.Files, size(b.Bytes))
		}
		if _, err := fmt.Fprintf(s.out, "%s: %s\n", b.Path, what); err != nil {
			return err
		}
	}
	return nil
}

func printJSON(w interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
