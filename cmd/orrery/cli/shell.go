package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// shellCmd runs queries, one after the other, in one of several languages. On a terminal a line can be edited and
// completed, and rows are a table; else the lines of the standard input are run, and rows are JSON lines.
type shellCmd struct {
	remote
	Lang, DB, Container string
	JSON, Quiet         bool
	Evals, Files        []string

	srv     *door.Server
	out     io.Writer
	width   int // of the terminal; 0 = there is none
	session shellSession
	names   map[string][]string // of containers, by database
}

// shellLanguage is a language of the shell. One more language is one more entry.
type shellLanguage struct {
	name, title string
	pasted      bool // lines that are pasted together are one text, up to a semicolon
	open        func(c *shellCmd) (shellSession, error)
}

var shellLanguages = []shellLanguage{
	{"sql", "NoSQL queries, such as SELECT * FROM c", true, openSQL},
	{"gremlin", "traversals, such as g.V().limit(10)", false, openGremlin},
	{"mongo", "JavaScript with db, such as db.orders.find({ n: 1 })", false, openMongo},
}

// shellSession runs texts of one language.
type shellSession interface {
	prompt() string
	run(ctx context.Context, text string) error
	explain(ctx context.Context, text string) error
	// unfinished reports whether the text goes on in the next line.
	unfinished(text string) bool
	// use is told that database and container have changed.
	use() error
	// words returns what can be completed after the beginning of a line, and the word that is completed.
	words(line string) (of []string, word string)
	close() error
}

func (c *shellCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "shell [FILE..]",
		Short: "Run queries in SQL, Gremlin or MongoDB's shell language, one after the other.",
		Args:  func(_ *cobra.Command, args []string) error { c.Files = args; return nil },
		RunE:  runs(func() error { return c.run(s, os.Stdin) })}
	f := cmd.Flags()
	c.remote.flags(f)
	urlVar(f, &c.AdminEndpoint, "admin-endpoint", "", "`URL` of its admin port, which knows the partitions.")
	var names []string
	for _, l := range shellLanguages {
		names = append(names, l.name)
	}
	f.Var(oneOf(&c.Lang, "sql", names...), "lang", "Language: sql, gremlin or mongo.")
	f.StringVar(&c.DB, "db", "", "`DATABASE` to begin with.")
	f.StringVar(&c.Container, "container", "", "`CONTAINER`, or graph, to begin with.")
	f.StringArrayVar(&c.Evals, "eval", nil, "Run this `TEXT`, and end. Repeatable.")
	f.BoolVar(&c.JSON, "json", false, "Print rows as JSON lines; always so if the output is no terminal, except what "+
		"--eval and files of --lang mongo print.")
	f.BoolVar(&c.Quiet, "quiet", false, "Begin without a greeting.")
	return cmd
}

func (c *shellCmd) run(s *streams, in *os.File) (err error) {
	if c.srv == nil {
		if c.srv, err = c.server(); err != nil {
			return err
		}
	}
	if c.Container != "" && c.DB == "" && c.Lang != "mongo" {
		return fmt.Errorf("--container %s: in which database? Give --db too", c.Container)
	}
	c.out = s.out
	out, ok := s.out.(*os.File)
	once := len(c.Evals)+len(c.Files) > 0
	terminal := ok && isatty.IsTerminal(in.Fd()) && isatty.IsTerminal(out.Fd())
	if !terminal && !(once && c.Lang == "mongo") {
		c.JSON = true
	}
	if err := c.open(); err != nil {
		return err
	}
	switch {
	case once:
		err = c.once()
	case terminal:
		err = c.interact(in, out)
	default:
		err = c.lines(bufio.NewScanner(in))
	}
	if err == errQuit {
		err = nil
	}
	return errors.Join(err, c.session.close())
}

// open begins a session of the language.
func (c *shellCmd) open() error {
	for _, l := range shellLanguages {
		if l.name == c.Lang {
			session, err := l.open(c)
			if err == nil {
				c.session = session
			}
			return err
		}
	}
	return fmt.Errorf("there is no language %s", c.Lang)
}

// once runs the files, then the texts of --eval, until one fails. Ctrl+C ends them.
func (c *shellCmd) once() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, name := range c.Files {
		script, ok := c.session.(interface {
			file(ctx context.Context, name, text string) error
		})
		if !ok {
			return fmt.Errorf("%s: only --lang mongo runs files", name)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := script.file(ctx, name, string(text)); err != nil {
			return err
		}
	}
	for _, text := range c.Evals {
		if err := c.line(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// longestLine is the length of the longest line in bytes.
const longestLine = 1 << 20

// lines runs the lines of an input, and ends at the first that fails.
func (c *shellCmd) lines(in *bufio.Scanner) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	in.Buffer(nil, longestLine)
	text := ""
	for in.Scan() {
		text += in.Text()
		if c.goesOn(text) {
			text += "\n"
			continue
		}
		if err := c.line(ctx, text); err != nil {
			return err
		}
		text = ""
	}
	if err := in.Err(); err != nil || strings.TrimSpace(text) == "" {
		return err
	}
	return c.line(ctx, text)
}

// goesOn reports whether the text of a query goes on in the next line.
func (c *shellCmd) goesOn(text string) bool {
	return !strings.HasPrefix(text, ":") && c.session.unfinished(text)
}

// joins reports whether the text of a query goes on in the next line if both are pasted together.
func (c *shellCmd) joins(text string) bool {
	for _, l := range shellLanguages {
		if l.name == c.Lang {
			return l.pasted && !strings.HasPrefix(text, ":") && !strings.HasSuffix(strings.TrimSpace(text), ";")
		}
	}
	return false
}

// pasteEnd is what a terminal sends behind a text that is pasted.
const pasteEnd = "\x1b[201~"

// keys are the keys of a terminal. Ctrl+C, by which the library ends its reading, becomes the keys that clear the line
// and enter it, and is remembered.
type keys struct {
	*os.File
	rest        []byte
	interrupted bool // since it was set to false
}

// Read implements io.Reader.
func (k *keys) Read(b []byte) (int, error) {
	if len(k.rest) == 0 {
		room := make([]byte, len(b))
		n, err := k.File.Read(room)
		if err != nil {
			return 0, err
		}
		const interrupt, clear = "\x03", "\x05\x15\r" // to the end of the line, delete what is before, enter
		k.interrupted = k.interrupted || bytes.Contains(room[:n], []byte(interrupt))
		k.rest = bytes.ReplaceAll(room[:n], []byte(interrupt), []byte(clear))
		const lastLine, entered = "\r" + pasteEnd, pasteEnd + "\r" // what ends with a line break is entered
		k.rest = bytes.ReplaceAll(k.rest, []byte(lastLine), []byte(entered))
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// interact reads lines from a terminal. It is raw while a line is edited only, so that Ctrl+C is a signal while a
// query runs: it ends the query, and not the shell.
func (c *shellCmd) interact(in, out *os.File) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	typed := &keys{File: in}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{typed, out}, c.session.prompt())
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		newLine, newPos, ok := c.complete(line, pos, key)
		if ok && newPos == pos {
			c.choices(t, line[:pos])
		}
		return newLine, newPos, ok
	}
	t.History = openHistory(c.Lang)
	t.SetBracketedPasteMode(true)
	defer t.SetBracketedPasteMode(false)
	if !c.Quiet {
		for _, l := range shellLanguages {
			if l.name == c.Lang {
				fmt.Fprintln(out, l.title, "- :help lists the commands, Ctrl+D ends")
			}
		}
	}
	text := ""
	for {
		t.SetPrompt(c.session.prompt())
		if text == "" {
			c.learn()
		} else {
			t.SetPrompt("... ")
		}
		line, pasted, err := c.readLine(t, in, out, signals)
		if err == io.EOF {
			fmt.Fprintln(out)
			return nil
		}
		if err != nil {
			return err
		}
		if line == "" && typed.interrupted { // what was entered so far is given up
			text, typed.interrupted = "", false
			continue
		}
		// An empty line ends what isn't complete.
		if text += line; line != "" && (c.goesOn(text) || pasted && c.joins(text)) {
			text += "\n"
			continue
		}
		if err := c.entered(text, out, signals); err != nil {
			return err
		}
		text = ""
	}
}

// readLine lets the user edit a line. Only meanwhile the terminal is raw, so that Ctrl+C ends what runs. A signal of
// before is forgotten: what it should end had ended.
func (c *shellCmd) readLine(t *term.Terminal, in, out *os.File, signals <-chan os.Signal) (
	line string, pasted bool, err error) {
	if w, h, err := term.GetSize(int(out.Fd())); err == nil {
		c.width = w
		_ = t.SetSize(w, h)
	}
	cooked, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", false, err
	}
	line, err = t.ReadLine()
	select {
	case <-signals:
	default:
	}
	if e := term.Restore(int(in.Fd()), cooked); e != nil {
		return "", false, e
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		return line, true, nil
	}
	return line, false, err
}

// entered runs what was entered, until it ends or Ctrl+C ends it: also one that was pressed as soon as the line was
// entered. It returns only errors that end the shell.
func (c *shellCmd) entered(text string, out io.Writer, signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	var cancelled bool
	wait.Go(func() {
		select {
		case <-signals:
			cancelled = true
			stop()
		case <-ctx.Done():
		}
	})
	err := c.line(ctx, text)
	stop()
	wait.Wait()
	var code exitCode
	switch {
	case err == errQuit || errors.As(err, &code):
		return err
	case cancelled:
		fmt.Fprintln(out, "cancelled")
	case err != nil:
		fmt.Fprintln(out, err)
	}
	return nil
}

// errQuit ends the shell.
var errQuit = errors.New("quit")

// line runs a query or a command.
func (c *shellCmd) line(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	if line == "" {
		return nil
	}
	bare := strings.TrimSuffix(line, ";")
	name, arg, _ := strings.Cut(bare, " ")
	switch name {
	case ":quit", "quit", "exit":
		return errQuit
	case ":help", "help":
		return c.help()
	}
	for _, cmd := range shellCommands {
		if cmd.name == name {
			return cmd.run(c, ctx, strings.TrimSpace(arg))
		}
	}
	if strings.HasPrefix(name, ":") {
		return fmt.Errorf("there is no command %s: :help lists them", name)
	}
	return c.session.run(ctx, line)
}
