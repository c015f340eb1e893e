package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// shellCmd runs NoSQL queries, one after the other. On a terminal a line can be edited and completed, and rows are a
// table; else the lines of the standard input are run, and rows are JSON lines.
type shellCmd struct {
	remote
	DB, Container string
	JSON          bool

	srv   *door.Server
	out   io.Writer
	width int // of the terminal; 0 = there is none
	names map[string][]string
}

func (c *shellCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "shell", Short: "Run NoSQL queries, one after the other.", Args: cobra.NoArgs,
		RunE: runs(func() error { return c.run(s, os.Stdin) })}
	f := cmd.Flags()
	c.remote.flags(f)
	f.StringVar(&c.DB, "db", "", "`DATABASE` to begin with.")
	f.StringVar(&c.Container, "container", "", "`CONTAINER` to begin with.")
	f.BoolVar(&c.JSON, "json", false, "Print rows as JSON lines; always so if the output is no terminal.")
	return cmd
}

// shellCommands are the commands beside queries.
var shellCommands = []struct {
	name, help string
	run        func(c *shellCmd, ctx context.Context, arg string) error
}{
	{":use", "DATABASE/CONTAINER, or CONTAINER of the same database: what queries are about", (*shellCmd).use},
	{":list", "the databases, or with DATABASE its containers", (*shellCmd).list},
	{":explain", "QUERY: its rows, how they were found, and what it cost", (*shellCmd).explain},
	{":partitions", "the physical partitions of the container (with --data)", (*shellCmd).partitions},
	{":tail", "changes of the container as they are made, until Ctrl+C", (*shellCmd).tail},
	{":json", "rows as JSON lines, or as a table again", (*shellCmd).toggle},
}

// prompt is what the shell shows before a line.
func (c *shellCmd) prompt() string {
	if c.Container == "" {
		return "orrery> "
	}
	return c.DB + "/" + c.Container + "> "
}

func (c *shellCmd) run(s *streams, in *os.File) (err error) {
	if c.srv, err = c.server(); err != nil {
		return err
	}
	if c.srv.NoSQL == "" {
		return errors.New("the server has no NoSQL API, or its address isn't known: give --endpoint")
	}
	c.out = s.out
	out, ok := s.out.(*os.File)
	if !ok || !isatty.IsTerminal(in.Fd()) || !isatty.IsTerminal(out.Fd()) {
		return c.lines(bufio.NewScanner(in))
	}
	return c.interact(in, out)
}

// longestLine is the length of the longest line in bytes.
const longestLine = 1 << 20

// lines runs the lines of an input, and ends at the first that fails.
func (c *shellCmd) lines(in *bufio.Scanner) error {
	in.Buffer(nil, longestLine)
	c.JSON = true
	for in.Scan() {
		if err := c.line(context.Background(), in.Text()); err == errQuit {
			return nil
		} else if err != nil {
			return err
		}
	}
	return in.Err()
}

// noInterrupt replaces Ctrl+C, by which the library ends its reading, by the key that clears the line.
type noInterrupt struct{ *os.File }

func (n noInterrupt) Read(b []byte) (int, error) {
	got, err := n.File.Read(b)
	for i := range b[:got] {
		if b[i] == 3 {
			b[i] = 21
		}
	}
	return got, err
}

// interact reads lines from a terminal. It is raw while a line is edited only, so that Ctrl+C is a signal while a
// query runs: it ends the query, and not the shell.
func (c *shellCmd) interact(in, out *os.File) error {
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{noInterrupt{in}, out}, c.prompt())
	t.AutoCompleteCallback = c.complete
	fmt.Fprintln(out, "NoSQL queries of", c.srv.NoSQL, "- :help lists the commands, Ctrl+D ends")
	for {
		t.SetPrompt(c.prompt())
		if w, h, err := term.GetSize(int(out.Fd())); err == nil {
			c.width = w
			_ = t.SetSize(w, h)
		}
		c.learn()
		cooked, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return err
		}
		line, err := t.ReadLine()
		if e := term.Restore(int(in.Fd()), cooked); e != nil {
			return e
		}
		if err == io.EOF {
			fmt.Fprintln(out)
			return nil
		}
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err = c.line(ctx, line)
		cancelled := ctx.Err() != nil
		stop()
		switch {
		case err == errQuit:
			return nil
		case cancelled:
			fmt.Fprintln(out, "cancelled")
		case err != nil:
			fmt.Fprintln(out, err)
		}
	}
}

// errQuit ends the shell.
var errQuit = errors.New("quit")

// line runs a query or a command.
func (c *shellCmd) line(ctx context.Context, line string) error {
	line = strings.TrimSuffix(strings.TrimSpace(line), ";")
	if line == "" || strings.HasPrefix(line, "--") {
		return nil
	}
	name, arg, _ := strings.Cut(line, " ")
	switch name {
	case ":quit", "quit", "exit":
		return errQuit
	case ":help", "help":
		var b strings.Builder
		for _, cmd := range shellCommands {
			fmt.Fprintf(&b, "%-12s %s\n", cmd.name, cmd.help)
		}
		fmt.Fprintf(&b, "%-12s end\nEverything else is a query, such as SELECT * FROM c\n", ":quit")
		_, err := io.WriteString(c.out, b.String())
		return err
	}
	for _, cmd := range shellCommands {
		if cmd.name == name {
			return cmd.run(c, ctx, strings.TrimSpace(arg))
		}
	}
	if strings.HasPrefix(name, ":") {
		return fmt.Errorf("there is no command %s: :help lists them", name)
	}
	return c.query(ctx, line, false)
}

func (c *shellCmd) use(ctx context.Context, arg string) error {
	db, container, ok := strings.Cut(arg, "/")
	if !ok {
		db, container = c.DB, arg
	}
	if db == "" || container == "" {
		return errors.New("want :use DATABASE/CONTAINER")
	}
	names, err := door.Names(ctx, c.srv, db)
	if err != nil {
		return err
	}
	if !slices.Contains(names, container) {
		return fmt.Errorf("the database %s has no container %s: %s", db, container, strings.Join(names, ", "))
	}
	c.DB, c.Container = db, container
	return nil
}

func (c *shellCmd) list(ctx context.Context, arg string) error {
	names, err := door.Names(ctx, c.srv, arg)
	if err == nil && len(names) > 0 {
		_, err = fmt.Fprintln(c.out, strings.Join(names, "\n"))
	}
	return err
}

func (c *shellCmd) explain(ctx context.Context, arg string) error { return c.query(ctx, arg, true) }

func (c *shellCmd) toggle(context.Context, string) error {
	c.JSON = !c.JSON
	return nil
}

// query runs a query.
func (c *shellCmd) query(ctx context.Context, text string, explain bool) error {
	if c.Container == "" {
		return errors.New("which container? :use DATABASE/CONTAINER")
	}
	q := &queryCmd{Endpoint: c.srv.NoSQL, DB: c.DB, Container: c.Container, Text: text, Explain: explain}
	q.Key = c.srv.Key
	out := c.out
	var t *rowTable
	if !c.JSON {
		t = &rowTable{out: c.out, width: c.width}
		out = t
	}
	ex, err := q.pages(ctx, http.DefaultClient.Do, out)
	if t != nil {
		err = errors.Join(err, t.flush())
	}
	if err == nil && explain {
		err = writeExplanation(c.out, ex)
	}
	return err
}

func (c *shellCmd) partitions(ctx context.Context, _ string) error {
	if c.Container == "" {
		return errors.New("which container? :use DATABASE/CONTAINER")
	}
	p := &partitionsCmd{Data: c.Data}
	if p.Data == "" {
		p.Data = "data"
	}
	admin, key, err := p.server()
	if err != nil {
		return err
	}
	r, err := server.AskForPartitions(ctx, admin, key, c.DB, c.Container)
	if err != nil {
		return err
	}
	return writePartitions(c.out, r)
}

func (c *shellCmd) tail(ctx context.Context, _ string) error {
	if c.Container == "" {
		return errors.New("which container? :use DATABASE/CONTAINER")
	}
	t := &tailCmd{Endpoint: c.srv.NoSQL, From: "now", Container: c.DB + "/" + c.Container}
	t.Key = c.srv.Key
	return t.follow(ctx, &streams{c.out, c.out})
}

// learn asks for the names that can be completed. Without an answer there are none.
func (c *shellCmd) learn() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	names := map[string][]string{}
	dbs, err := door.Names(ctx, c.srv, "")
	const most = 20 // databases
	for _, db := range dbs[:min(len(dbs), most)] {
		if err == nil {
			names[db], err = door.Names(ctx, c.srv, db)
		}
	}
	if err == nil {
		c.names = names
	}
}

// keywords are completed in queries.
var keywords = []string{"SELECT", "FROM", "WHERE", "ORDER BY", "GROUP BY", "VALUE", "DISTINCT", "TOP", "OFFSET",
	"LIMIT",
	"JOIN", "EXISTS", "ARRAY", "COUNT(1)", "CONTAINS(", "STARTSWITH(", "IS_DEFINED(", "ARRAY_CONTAINS("}

// complete completes the word before the cursor when Tab is pressed.
func (c *shellCmd) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	start := strings.LastIndexByte(line[:pos], ' ') + 1
	word := line[start:pos]
	var of []string
	switch {
	case start == 0 && strings.HasPrefix(word, ":"):
		for _, cmd := range shellCommands {
			of = append(of, cmd.name)
		}
	case strings.HasPrefix(line, ":use ") || strings.HasPrefix(line, ":list "):
		for db, containers := range c.names {
			of = append(of, db)
			for _, name := range containers {
				of = append(of, db+"/"+name)
			}
		}
	default:
		of = keywords
	}
	found := common(of, word)
	if len(found) <= len(word) {
		return line, pos, true
	}
	return line[:start] + found + line[pos:], start + len(found), true
}

// common returns the longest beginning that all words have in common that begin with prefix, in any case of letters.
func common(of []string, prefix string) string {
	found := ""
	for _, w := range of {
		switch {
		case !strings.HasPrefix(strings.ToLower(w), strings.ToLower(prefix)):
		case found == "":
			found = w
		default:
			n := 0
			for n < min(len(found), len(w)) && found[n] == w[n] {
				n++
			}
			found = found[:n]
		}
	}
	return found
}
