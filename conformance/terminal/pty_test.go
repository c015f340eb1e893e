//go:build linux

// Package terminal runs the command line on a pseudo-terminal, as a user has it.
package terminal

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/orrerydb/orrery/cmd/orrery/cli"
	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// itself makes the test's program the command line.
const itself = "ORRERY_TEST_COMMAND_LINE"

func TestMain(m *testing.M) {
	if os.Getenv(itself) != "" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// terminal is a program on a pseudo-terminal.
type terminal struct {
	t   *testing.T
	cmd *exec.Cmd
	tty *os.File

	mu   sync.Mutex
	got  []byte // everything that was written
	seen int    // what expect has passed, without control sequences
	eof  chan struct{}
}

// width is the terminal's width in columns.
const width = 60

// command is the command line with these arguments for a server. home is where it keeps its history.
func command(s *harness.Server, home string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append(args, "--endpoint", "http://"+s.Addr(server.NoSQL), "--mongo-endpoint",
		s.Addr(server.Mongo), "--gremlin-endpoint", "ws://"+s.Addr(server.Gremlin)+"/gremlin")...)
	cmd.Env = append(os.Environ(), itself+"=1", "HOME="+home, "XDG_CONFIG_HOME="+home, "TERM=xterm-256color")
	return cmd
}

// start runs a program on a terminal.
func start(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: width})
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, tty: tty, eof: make(chan struct{})}
	go func() {
		defer close(x.eof)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			x.mu.Lock()
			x.got = append(x.got, b[:n]...)
			x.mu.Unlock()
			if err != nil { // the program has ended
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = tty.Close()
	})
	return x
}

// control finds what moves the cursor or chooses colours.
var control = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// shown is what was written behind the last expectation, without control sequences.
func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(control.ReplaceAll(x.got, nil)[x.seen:])
}

// keys presses keys.
func (x *terminal) keys(text string) {
	x.t.Helper()
	if _, err := x.tty.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// expect waits until a text is shown, and returns what was written up to its end since the last expectation.
func (x *terminal) expect(text string) string {
	x.t.Helper()
	for range 3000 {
		shown := x.shown()
		if at := strings.Index(shown, text); at >= 0 {
			x.seen += at + len(text)
			return shown[:at+len(text)]
		}
		time.Sleep(10 * time.Millisecond)
	}
	x.t.Fatalf("%q isn't shown, but %q", text, x.shown())
	return ""
}

// enter enters a line, and waits for a text behind it and then the prompt.
func (x *terminal) enter(line, text, prompt string) string {
	x.t.Helper()
	x.keys(line + "\r")
	x.expect("\r\n")
	shown := ""
	if text != "" {
		shown = x.expect(text)
	}
	return shown + x.expect(prompt)
}

// ends waits for the end of the program.
func (x *terminal) ends(code int) {
	x.t.Helper()
	done := make(chan error, 1)
	go func() { done <- x.cmd.Wait() }()
	select {
	case <-done:
		if got := x.cmd.ProcessState.ExitCode(); got != code {
			x.t.Errorf("exit code %d, want %d: %q", got, code, x.shown())
		}
	case <-time.After(30 * time.Second):
		x.t.Fatalf("the program doesn't end: %q", x.shown())
	}
}

// runs reports whether the program is at work: it has given the terminal back its ordinary mode, in which Ctrl+C is a
// signal. While a line is edited the terminal is raw, and Ctrl+C is a key.
func (x *terminal) runs() bool {
	state, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	return state.Lflag&unix.ISIG != 0
}

// wait waits until something is so.
func wait(t *testing.T, is func() bool) {
	t.Helper()
	for range 1000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it isn't so after 10 s")
}
