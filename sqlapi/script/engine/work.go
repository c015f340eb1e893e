// Package engine runs JavaScript in a script worker: a process that serves the runs of one server over its standard
// input and output, and nothing else.
package engine

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// A worker needs one processor for the program, and one for what watches it.
const processors = 2

// gcPercent lets the heap of short runs grow to some 40 MB between collections.
const gcPercent = 1000

// Work serves runs. It takes possession of the process: limits hold for it as a whole, it ignores interrupts from a
// terminal, which are for the server, and the process ends when in does or a limit is exceeded. Work returns only after
// an error.
func Work(in io.Reader, out io.Writer) error {
	signal.Ignore(os.Interrupt)
	closeInherited()
	runtime.GOMAXPROCS(processors)
	debug.SetGCPercent(gcPercent)
	time.Local = time.UTC // programs see the service's zone
	frames := &input{r: bufio.NewReader(in)}
	limits, err := wire.DecodeLimits(frames.next())
	if err != nil {
		return err
	}
	w := &worker{in: frames, out: wire.Writer{W: out}, programs: newPrograms(), shapes: newShapes()}
	if w.watch, err = newWatch(limits.Memory, frames); err != nil {
		return err
	}
	for {
		if err := w.serve(frames.next()); err != nil {
			return err
		}
	}
}

// worker is the state that outlives a run.
type worker struct {
	in       *input
	out      wire.Writer
	programs *programs
	shapes   *shapes
	watch    *watch
}

// serve performs one run and sends its outcome.
func (w *worker) serve(f wire.Frame) error {
	w.watch.begin()
	var reply func(last bool) wire.Frame
	switch f.Type {
	case wire.TypeRun:
		setting, run, err := wire.DecodeRun(f)
		if err != nil {
			return err
		}
		reply = w.run(setting, run)
	case wire.TypeCall:
		setting, call, err := wire.DecodeCall(f)
		if err != nil {
			return err
		}
		reply = w.call(setting, call)
	default:
		return fmt.Errorf("%w: type %q", wire.ErrFrame, f.Type)
	}
	return w.out.Write(reply(w.watch.end()))
}

// run runs a program.
func (w *worker) run(setting wire.Setting, run *wire.Run) func(last bool) wire.Frame {
	result, err := runProgram(w, setting, run)
	if err != nil {
		return func(last bool) wire.Frame { return wire.EncodeFault(err, last) }
	}
	return func(last bool) wire.Frame { return wire.EncodeDone(result, last) }
}

// call evaluates a function.
func (w *worker) call(setting wire.Setting, call wire.Call) func(last bool) wire.Frame {
	values, reads, err := callFunction(w, setting, call)
	if err != nil {
		return func(last bool) wire.Frame { return wire.EncodeFault(err, last) }
	}
	return func(last bool) wire.Frame { return wire.EncodeValues(values, reads, last) }
}

// send sends operations to the server.
func (w *worker) send(ops []wire.Op) {
	if err := w.out.Write(wire.EncodeOps(ops)); err != nil {
		os.Exit(1) // the server is gone
	}
}

// answers returns the next answers of the server, which are for some of the operations that wait.
func (w *worker) answers(waiting int) []wire.Answer {
	f := w.in.next()
	answers, err := wire.DecodeAnswers(f)
	if err != nil || f.Type != wire.TypeAnswers || len(answers) == 0 || len(answers) > waiting {
		fmt.Fprintln(os.Stderr, "malformed answers:", err)
		os.Exit(1)
	}
	return answers
}

// clockOf returns the clock of a run.
func clockOf(s wire.Setting) *clock.Clock {
	if s.Now.IsZero() {
		return clock.New()
	}
	return clock.Fake(s.Now)
}
