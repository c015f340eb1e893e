// Package mongoshell runs JavaScript with the object db of MongoDB's shell, on the engine that runs the programs of the
// NoSQL API. The object is written in JavaScript (db.js, types.js) over one function that sends a command; convert.go
// turns values of JavaScript into BSON and back, inspect.go shows them as the shell does.
//
// Example:
//
//	db.people.find({ n: { $gt: 1 } }).sort({ n: -1 })
//	-> {find: "people", filter: {n: {$gt: 1}}, sort: {n: -1}}, sent to the database of db
//	-> [ { _id: 2, n: 7 }, { _id: 1, n: 3 } ]
package mongoshell

import (
	"context"
	_ "embed" // the programs
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/orrerydb/orrery/core/doc"
)

// Client runs commands, which have no $db. The reply may be an error of MongoDB; an error means that there is none.
type Client interface {
	Run(ctx context.Context, db string, cmd []byte) (doc.Doc, error)
	Login(ctx context.Context, user, password string) error
	Address() string
}

// Options are the surroundings of a shell.
type Options struct {
	Client   Client
	Database string    // of db at the beginning; "" = test
	Out      io.Writer // what print and results are written to
	JSON     bool      // results are relaxed Extended JSON, one value a line, and not JavaScript
	Version  string
	Prompt   bool                         // a person reads the results: long ones stop, and "it" goes on
	Load     func(string) (string, error) // the text of a script that load names; nil = there is none
	Env      map[string]string            // process.env
}

// Shell runs scripts, one after the other. Not safe for concurrent use.
type Shell struct {
	o    Options
	vm   *goja.Runtime
	host *goja.Object
	ctx  context.Context // of the script that runs
	last *goja.Object    // the cursor that "it" goes on with

	types  map[string]*goja.Object // constructors
	cursor *goja.Object            // constructor
	shown  *goja.Symbol
}

//go:embed types.js
var typesSource string

//go:embed db.js
var dbSource string

// mostCalls is the depth of calls in a script, which keeps a recursion without end from taking all memory.
const mostCalls = 2000

// New returns a shell.
func New(o Options) (*Shell, error) {
	if o.Database == "" {
		o.Database = "test"
	}
	s := &Shell{o: o, vm: goja.New(), ctx: context.Background(), types: map[string]*goja.Object{}}
	s.vm.SetMaxCallStackSize(mostCalls)
	if err := s.bind(); err != nil {
		return nil, err
	}
	for _, p := range []struct{ name, text string }{{"types.js", typesSource}, {"db.js", dbSource}} {
		// In a function, so that its own names aren't those of scripts.
		f, err := s.vm.RunScript(p.name, "(function ($host) {"+p.text+"\n})")
		if err == nil {
			call, _ := goja.AssertFunction(f)
			_, err = call(goja.Undefined(), s.host)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	types := s.host.Get("types").ToObject(s.vm)
	for _, name := range types.Keys() {
		s.types[name] = types.Get(name).ToObject(s.vm)
	}
	s.cursor = s.host.Get("Cursor").ToObject(s.vm)
	s.shown, _ = s.host.Get("shown").(*goja.Symbol)
	return s, nil
}

// Quit is the error of a script that has called quit.
type Quit struct{ Code int }

// Error implements error.
func (q *Quit) Error() string { return fmt.Sprintf("quit(%d)", q.Code) }

// ErrCancelled is the error of a script whose context has ended.
var ErrCancelled = errors.New("cancelled")

// ScriptError is an error that a script has thrown, or that its text has.
type ScriptError struct {
	File string
	Line int    // 0 = not known
	Text string // such as "MongoServerError: E11000 duplicate key error"
	More bool   // the text is incomplete: more lines may follow
}

// Error implements error.
func (e *ScriptError) Error() string {
	switch {
	case e.File == "":
		return e.Text
	case e.Line == 0:
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// DB returns the name of the database of db.
func (s *Shell) DB() string {
	db, ok := s.vm.Get("db").(*goja.Object)
	if !ok {
		return ""
	}
	name, _ := db.Get("_name").Export().(string)
	return name
}

// Run runs a script and writes nothing but what it prints. file is its name in errors; "" has none.
func (s *Shell) Run(ctx context.Context, file, text string) error {
	_, err := s.run(ctx, file, text)
	return err
}

// Eval runs a script and writes the value of its last expression, unless it is undefined.
func (s *Shell) Eval(ctx context.Context, file, text string) error {
	v, err := s.run(ctx, file, text)
	if err != nil {
		return err
	}
	return s.guard(ctx, file, func() error { return s.write(v) })
}

// Line runs what a person has entered: a command such as "show dbs", or a script.
func (s *Shell) Line(ctx context.Context, text string) error {
	words := strings.Fields(strings.TrimRight(strings.TrimSpace(text), ";"))
	if len(words) > 0 {
		for _, c := range lineCommands {
			if c.word == words[0] && c.args == len(words)-1 {
				return s.guard(ctx, "", func() error { return c.run(s, words[1:]) })
			}
		}
	}
	return s.Eval(ctx, "", text)
}

// run compiles and runs a script. An object literal, such as {a: 1}, is a value and not a block.
func (s *Shell) run(ctx context.Context, file, text string) (v goja.Value, err error) {
	var p *goja.Program
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") && !strings.HasSuffix(t, ";") {
		p, _ = compile(file, "("+text+"\n)")
	}
	if p == nil {
		if p, err = compile(file, text); err != nil {
			return nil, syntaxError(file, err)
		}
	}
	err = s.guard(ctx, file, func() (err error) {
		v, err = s.vm.RunProgram(p)
		return err
	})
	return v, err
}

// Unfinished reports whether a text is the beginning of a script: something that was opened isn't closed.
func Unfinished(text string) bool {
	_, err := compile("", text)
	var e *ScriptError
	return err != nil && errors.As(syntaxError("", err), &e) && e.More
}

// Explain runs an expression that is a cursor, and returns the explanation of its command as Extended JSON.
func (s *Shell) Explain(ctx context.Context, text string) (out string, err error) {
	v, err := s.run(ctx, "", text)
	if err != nil {
		return "", err
	}
	err = s.guard(ctx, "", func() error {
		o, ok := v.(*goja.Object)
		if !ok || !s.vm.InstanceOf(v, s.cursor) {
			return &ScriptError{Text: "want a find(..) or an aggregate(..)"}
		}
		explain, _ := goja.AssertFunction(o.Get("explain"))
		reply, err := explain(o, s.vm.ToValue("executionStats"))
		if err == nil {
			out, err = s.extended(reply, true)
		}
		return err
	})
	return out, err
}

// compile compiles a script, whose source maps aren't looked for.
func compile(file, text string) (*goja.Program, error) {
	tree, err := parser.ParseFile(nil, file, text, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, err
	}
	return goja.CompileAST(tree, false)
}

// syntaxError returns the error of a text that can't be compiled.
func syntaxError(file string, err error) error {
	e := &ScriptError{File: file, Text: "SyntaxError: " + err.Error()}
	var list parser.ErrorList
	var at *goja.CompilerSyntaxError
	switch {
	case errors.As(err, &list) && len(list) > 0:
		e.Line, e.Text = list[0].Position.Line, "SyntaxError: "+list[0].Message
		for _, one := range list {
			e.More = e.More || strings.Contains(one.Message, "end of input")
		}
	case errors.As(err, &at):
		e.Text = "SyntaxError: " + at.Message
		if at.File != nil {
			e.Line = at.File.Position(at.Offset).Line
		}
	}
	return e
}

// guard calls f, which runs JavaScript, until ctx ends. It returns errors in readable form.
func (s *Shell) guard(ctx context.Context, file string, f func() error) (err error) {
	s.ctx = ctx
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.vm.Interrupt(ErrCancelled)
		close(interrupted)
	})
	defer func() {
		if !stop() {
			<-interrupted // else it would end the next text
		}
		s.vm.ClearInterrupt()
		s.ctx = context.Background()
	}()
	if caught := s.vm.Try(func() { err = f() }); caught != nil {
		err = caught
	}
	return s.readable(ctx, file, err)
}

// readable returns the error of a script.
func (s *Shell) readable(ctx context.Context, file string, err error) error {
	var quit *goja.InterruptedError
	var thrown *goja.Exception
	var stack *goja.StackOverflowError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &quit):
		if q, ok := quit.Value().(*Quit); ok {
			return q
		}
		return ErrCancelled
	case ctx.Err() != nil:
		return ErrCancelled
	case errors.As(err, &stack):
		return &ScriptError{File: file, Text: "RangeError: Maximum call stack size exceeded"}
	case errors.As(err, &thrown):
		e := &ScriptError{File: file, Text: s.thrown(thrown.Value())}
		for _, frame := range thrown.Stack() {
			if at := frame.Position(); frame.SrcName() == file && at.Line > 0 && !own(frame.SrcName()) {
				e.Line = at.Line
				break
			}
		}
		return e
	}
	return err
}

// own reports whether a file is one of this package.
func own(file string) bool { return file == "types.js" || file == "db.js" }

// thrown returns a value that was thrown, in one line if it is an error.
func (s *Shell) thrown(v goja.Value) string {
	if o, ok := v.(*goja.Object); ok && o.ClassName() == "Error" {
		if o.Get("name").String() == "GoError" { // of a function of host.go
			return "Error: " + o.Get("message").String()
		}
		return o.String()
	}
	return s.inspect(v)
}

// write writes a result.
func (s *Shell) write(v goja.Value) error {
	if o, ok := v.(*goja.Object); ok && s.vm.InstanceOf(v, s.cursor) {
		if f, ok := goja.AssertFunction(o.Get("explained")); ok {
			var err error
			if v, err = f(o); err != nil {
				return err
			}
			return s.writeValue(v)
		}
		return s.writeCursor(o)
	}
	return s.writeValue(v)
}

func (s *Shell) writeValue(v goja.Value) error {
	if v == nil || goja.IsUndefined(v) {
		return nil
	}
	text := ""
	switch str, ok := v.Export().(string); {
	case s.o.JSON:
		var err error
		if text, err = s.extended(v, true); err != nil {
			return err
		}
	case ok:
		text = str
	default:
		text = s.inspect(v)
	}
	_, err := fmt.Fprintln(s.o.Out, text)
	return err
}

// pageRows is the number of documents of a cursor that are shown to a person at once.
const pageRows = 20

// writeCursor writes documents of a cursor: those of one page for a person, else all.
func (s *Shell) writeCursor(cursor *goja.Object) error {
	page, _ := goja.AssertFunction(s.host.Get("page"))
	for {
		most := pageRows
		if s.o.JSON && !s.o.Prompt {
			most = 1000
		}
		got, err := page(goja.Undefined(), cursor, s.vm.ToValue(most))
		if err != nil {
			return err
		}
		docs := got.ToObject(s.vm)
		n := int(docs.Get("length").ToInteger())
		if s.o.JSON {
			for i := range n {
				if err := s.writeValue(docs.Get(fmt.Sprint(i))); err != nil {
					return err
				}
			}
		} else if n > 0 || s.last != cursor {
			if err := s.writeValue(docs); err != nil {
				return err
			}
		}
		s.last = nil
		if n < most {
			return nil
		}
		if s.o.JSON && !s.o.Prompt {
			continue
		}
		more, _ := goja.AssertFunction(cursor.Get("hasNext"))
		goesOn, err := more(cursor)
		if err != nil || !goesOn.ToBoolean() {
			return err
		}
		s.last = cursor
		_, err = fmt.Fprintln(s.o.Out, `Type "it" for more`)
		return err
	}
}
