package script

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// process is a worker process. One run uses it at a time.
type process struct {
	cmd    *exec.Cmd
	in     *os.File // the worker's standard input
	frames wire.Writer
	out    *bufio.Reader
	outEnd *os.File
	stderr tail
	ended  chan struct{} // closed when the process has ended and was waited for
	idle   *time.Timer   // ends the process; stopped while a run has it
}

// start starts a worker and tells it its limits.
func start(command []string, limits wire.Limits) (*process, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childIn.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer childOut.Close()
	p := &process{in: in, frames: wire.Writer{W: in}, out: bufio.NewReader(out), outEnd: out,
		ended: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...) //nolint:gosec // this binary
	p.cmd.Env = []string{}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, &p.stderr
	p.cmd.SysProcAttr = endsWithParent()
	if err := p.cmd.Start(); err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is read from what it wrote
		close(p.ended)
	}()
	if err := p.frames.Write(wire.EncodeLimits(limits)); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// exchange sends a frame and waits for the worker's.
func (p *process) exchange(f wire.Frame) (wire.Frame, error) {
	if err := p.frames.Write(f); err != nil {
		return wire.Frame{}, err
	}
	return wire.Read(p.out)
}

// kill makes exchange fail. It may be called at any time.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// stop kills the process and waits for its end.
func (p *process) stop() {
	p.kill()
	<-p.ended
	p.in.Close()
	p.outEnd.Close()
}

// alive reports whether the process hasn't ended.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// tail keeps the first bytes that a worker writes to its standard error, where the runtime says why it ends.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// kept is how many bytes a tail keeps.
const kept = 4 << 10

var _ io.Writer = (*tail)(nil)

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b[:min(len(b), max(kept-t.buf.Len(), 0))])
	return len(b), nil
}

// has reports whether one of the texts was written.
func (t *tail) has(texts ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range texts {
		if strings.Contains(t.buf.String(), text) {
			return true
		}
	}
	return false
}
