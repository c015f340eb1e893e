package engine

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// maxDepth is the most JavaScript calls within each other.
const maxDepth = 10_000

// machine is the state of one run: a new runtime, so that nothing of a program reaches another run, and its time.
type machine struct {
	rt     *goja.Runtime
	clock  *clock.Clock
	source *source
	main   bool // the entry function is running, not a callback
	began  time.Time
	limit  time.Duration
}

// The values that a runtime is interrupted with.
type (
	timeUp  struct{}
	aborted struct{ reason *wire.Error }
)

// wall measures how long runs take. A program's own clock may be frozen.
var wall = clock.New()

// newMachine makes a runtime, whose time begins. The worker's watch interrupts it when the time is up.
func (w *worker) newMachine(setting wire.Setting, s *source) *machine {
	m := &machine{rt: goja.New(), clock: clockOf(setting), source: s, began: wall.Now(), limit: setting.Time}
	m.rt.SetMaxCallStackSize(maxDepth)
	m.rt.SetTimeSource(m.clock.Now)
	m.rt.SetRandSource(m.clock.Float64)
	m.rt.SetParserOptions(parser.WithDisableSourceMaps) // eval would read the files that they name
	w.watch.run.Store(m)
	return m
}

// elapsed is how long the run has taken.
func (m *machine) elapsed() time.Duration { return wall.Now().Sub(m.began) }

// late reports whether no further operations are accepted.
func (m *machine) late() bool { return m.elapsed() > m.limit/5*4 }

// load runs a file of the object model and returns its function.
func (m *machine) load(name string) goja.Value {
	v, err := m.rt.RunProgram(model()[name])
	if err != nil {
		panic(err)
	}
	return v
}

// globals defines what every program sees, and returns the functions that define more.
func (m *machine) globals(host goja.Value) goja.Value { return m.must(m.call(m.load("globals"), host)) }

// must returns v. The object model's own files don't fail, unless the run was interrupted.
func (m *machine) must(v goja.Value, err error) goja.Value {
	if err != nil {
		panic(err)
	}
	return v
}

// call calls a function of JavaScript.
func (m *machine) call(f goja.Value, args ...goja.Value) (goja.Value, error) {
	callable, ok := goja.AssertFunction(f)
	if !ok {
		return nil, fmt.Errorf("%v is no function", f)
	}
	return callable(goja.Undefined(), args...)
}

// entry runs a program and returns its function.
func (m *machine) entry(p *program) (goja.Value, *wire.Error) {
	v, err := m.rt.RunProgram(p.compiled)
	if err != nil {
		return nil, m.failure(err)
	}
	if _, ok := goja.AssertFunction(v); !ok {
		return nil, wire.CompilationError("SyntaxError: The body of the script must be a function.")
	}
	return v, nil
}

// settled returns the value that a promise has, and v itself if it is none. A promise that nothing will ever settle
// is undefined.
func (m *machine) settled(v goja.Value) (goja.Value, *wire.Error) {
	o, ok := v.(*goja.Object)
	if !ok || o.ExportType() != promiseType {
		return v, nil
	}
	switch p := o.Export().(*goja.Promise); p.State() {
	case goja.PromiseStateRejected:
		return nil, m.thrown(p.Result(), "")
	case goja.PromiseStateFulfilled:
		return p.Result(), nil
	default:
		return goja.Undefined(), nil
	}
}

var (
	promiseType = reflect.TypeFor[*goja.Promise]()
	stringType  = reflect.TypeFor[string]()
)

// guard calls f and returns how it failed. A panic of the engine is a failure of the program that caused it.
func (m *machine) guard(f func() *wire.Error) (fault *wire.Error) {
	defer func() {
		if x := recover(); x != nil {
			if err, ok := x.(error); ok {
				fault = m.failure(err)
				return
			}
			fault = wire.ExceptionError(fmt.Sprintf("Error: %v", x))
		}
	}()
	return f()
}

// failure turns an error of the runtime into that of the run.
func (m *machine) failure(err error) *wire.Error {
	switch err := err.(type) {
	case *goja.InterruptedError:
		if a, ok := err.Value().(aborted); ok {
			return a.reason
		}
		return wire.TimeError(m.limit)
	case *goja.StackOverflowError:
		return wire.ExceptionError("Error: Out of stack space")
	case *goja.Exception:
		return m.thrown(err.Value(), err.String())
	}
	return wire.ExceptionError("Error: " + err.Error())
}

// thrown is the failure of a program that threw v. The stack is the runtime's, for values that have none.
func (m *machine) thrown(v goja.Value, stack string) *wire.Error {
	number := 0
	text := m.text(func() string {
		if o, ok := v.(*goja.Object); ok {
			if n := o.Get("number"); n != nil && !goja.IsNaN(n.ToNumber()) {
				number = int(n.ToInteger())
			}
			if s := o.Get("stack"); s != nil && s.ExportType() == stringType {
				stack = s.String()
			}
		}
		return v.String()
	})
	if stack != "" {
		text += "\r\nStack trace: " + m.trace(stack)
	}
	e := wire.ExceptionError(text)
	e.Sub = number
	return e
}

// text returns what f does. The program's own toString may throw.
func (m *machine) text(f func() string) (s string) {
	defer func() {
		if recover() != nil {
			s = "[object Object]"
		}
	}()
	return f()
}

// trace rewrites a stack trace in the service's form, once.
func (m *machine) trace(stack string) string {
	if !strings.Contains(stack, "\n\tat ") {
		return strings.TrimSuffix(stack, "\n")
	}
	t := m.source.trace(stack)
	if m.main {
		t += m.source.mainFrames()
	}
	return t
}
