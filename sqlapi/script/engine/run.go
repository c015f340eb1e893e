package engine

import (
	"strings"

	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// Bounds of what one run collects.
const (
	maxBurst = 16 << 20 // bytes of operations that are accepted before their answers
	maxLog   = 4 << 10  // bytes of the log, which goes into a header

	// maxWrites is the number of writes that are accepted: somewhat fewer than a transaction may have, so that a
	// program that inserts until it is refused keeps what it has inserted.
	maxWrites = 65000
)

// programRun is the run of a procedure or a trigger.
type programRun struct {
	*machine
	worker *worker
	texts  *texts
	ops    []wire.Op
	// waiting is the number of operations that were sent and not answered.
	waiting int
	bytes   int
	writes  int // of the whole run
	log     strings.Builder
}

// runProgram runs a procedure or a trigger to its end.
func runProgram(w *worker, setting wire.Setting, run *wire.Run) (wire.Result, *wire.Error) {
	p, fault := w.programs.get(run.Name, run.Source, true)
	if fault != nil {
		return wire.Result{}, fault
	}
	r := &programRun{worker: w}
	var result wire.Result
	r.machine = w.newMachine(setting, &p.source)
	defer r.discard()
	fault = r.guard(func() (fault *wire.Error) {
		result, fault = r.perform(p, run)
		return fault
	})
	if fault != nil {
		fault.Log = r.log.String()
	}
	return result, fault
}

// perform calls the program's function, hands answers to its callbacks until it has no more operations, and returns
// what it leaves.
func (r *programRun) perform(p *program, run *wire.Run) (wire.Result, *wire.Error) {
	r.texts = r.newTexts()
	host := r.rt.NewDynamicObject(&host{m: r.machine, of: func(name string) goja.Value {
		return r.hostValue(run, name)
	}})
	context := r.must(r.call(r.load("context"), host, r.globals(host))).(*goja.Object)
	entry, fault := r.entry(p)
	if fault != nil {
		return wire.Result{}, fault
	}
	args, fault := r.texts.arguments(nil, emptyList(run.Args))
	if fault != nil {
		return wire.Result{}, fault
	}
	r.main = true
	value, err := r.call(entry, args...)
	if err != nil {
		return wire.Result{}, r.failure(err)
	}
	r.main = false
	for len(r.ops) > 0 {
		if err := r.exchange(context.Get("deliver")); err != nil {
			return wire.Result{}, r.failure(err)
		}
	}
	if _, fault := r.settled(value); fault != nil {
		return wire.Result{}, fault
	}
	return r.result(context.Get("left"), run)
}

// exchange sends the operations that the program has asked for, and calls its callbacks with the answers.
func (r *programRun) exchange(deliver goja.Value) error {
	r.worker.send(r.ops)
	r.waiting = len(r.ops)
	r.ops, r.bytes = nil, 0
	for r.waiting > 0 {
		answers := r.worker.answers(r.waiting)
		r.waiting -= len(answers)
		if err := r.deliver(deliver, answers); err != nil {
			return err
		}
	}
	return nil
}

// discard takes the answers that the program has left, so that the next run doesn't get them.
func (r *programRun) discard() {
	for r.waiting > 0 {
		r.waiting -= len(r.worker.answers(r.waiting))
	}
}

// deliver calls the program's callbacks with answers.
func (r *programRun) deliver(deliver goja.Value, answers []wire.Answer) error {
	for _, a := range answers {
		status, text := 0, ""
		if a.Err != nil {
			status, text = a.Err.Status, a.Err.Body
		}
		body, err := r.parsed(a.Reply.Body)
		if err != nil {
			return err
		}
		options, err := r.parsed(a.Reply.Options)
		if err != nil {
			return err
		}
		_, err = r.call(deliver, r.rt.ToValue(status), r.rt.ToValue(text), body, options, r.rt.ToValue(a.Reply.ETag))
		if err != nil {
			return err
		}
	}
	return nil
}

// result returns what the program leaves. A trigger that hasn't set a body leaves the one that it got.
func (r *programRun) result(left goja.Value, run *wire.Run) (wire.Result, *wire.Error) {
	name, given := "response", run.Response
	if run.Kind == wire.PreTrigger {
		name, given = "request", run.Request
	}
	v, err := r.call(left, r.rt.ToValue(name))
	if err != nil {
		return wire.Result{}, r.failure(err)
	}
	var body []byte
	switch {
	case !goja.IsUndefined(v):
		body = []byte(v.String())
	case run.Kind != wire.Procedure && given != nil:
		body = given.Body
	}
	result := wire.Result{Log: r.log.String()}
	switch run.Kind {
	case wire.PreTrigger:
		result.Request = body
	case wire.PostTrigger:
		result.Response = body
	default:
		result.Body = body
	}
	return result, nil
}

// kindNames are the kinds of programs as the object model knows them.
var kindNames = map[wire.Kind]string{wire.Procedure: "procedure", wire.PreTrigger: "pre-trigger",
	wire.PostTrigger: "post-trigger"}

// message makes the description of a message.
func (r *programRun) message(m *wire.Message) *goja.Object {
	if m == nil {
		m = &wire.Message{}
	}
	headers := make([]any, 0, 2*len(m.Headers))
	for _, h := range m.Headers {
		headers = append(headers, h.Name, h.Value)
	}
	o := r.rt.NewObject()
	r.must(nil, o.Set("headers", r.rt.NewArray(headers...)))
	r.must(nil, o.Set("operation", m.Operation))
	if len(m.Body) > 0 {
		r.must(nil, o.Set("body", string(m.Body)))
	}
	return o
}

// emptyList returns an empty list for arguments that weren't given.
func emptyList(args []byte) []byte {
	if len(args) == 0 {
		return []byte("[]")
	}
	return args
}

// parsed is the value of JSON text, or undefined.
func (r *programRun) parsed(b []byte) (goja.Value, error) {
	if len(b) == 0 {
		return goja.Undefined(), nil
	}
	return r.texts.value(b)
}

// hostValue makes a property of the host that the object model needs for a procedure or a trigger.
func (r *programRun) hostValue(run *wire.Run, name string) goja.Value {
	switch name {
	case "kind":
		return r.rt.ToValue(kindNames[run.Kind])
	case "self":
		return r.rt.ToValue(run.Links.Self)
	case "alt":
		return r.rt.ToValue(run.Links.Alt)
	case "logs":
		return r.rt.ToValue(run.Log)
	case "request":
		return r.message(run.Request)
	case "response":
		return r.message(run.Response)
	case "spatial":
		return r.native(r.spatial)
	case "invalid":
		return r.native(r.invalid)
	case "uuid":
		return r.native(func(goja.FunctionCall) goja.Value { return r.rt.ToValue(r.clock.UUID().String()) })
	case "size":
		return r.native(func(c goja.FunctionCall) goja.Value { return r.rt.ToValue(len(c.Argument(0).String())) })
	case "send":
		return r.native(func(c goja.FunctionCall) goja.Value { return r.rt.ToValue(r.send(c)) })
	case "log":
		return r.native(func(c goja.FunctionCall) goja.Value {
			r.logged(c.Argument(0).String())
			return goja.Undefined()
		})
	case "abort":
		return r.native(func(c goja.FunctionCall) goja.Value {
			r.rt.Interrupt(aborted{r.thrown(c.Argument(0), "")})
			return goja.Undefined()
		})
	}
	return nil
}

// send takes an operation for the next exchange. It refuses one for which there is no time or room.
func (r *programRun) send(c goja.FunctionCall) bool {
	if r.late() || r.bytes > maxBurst {
		return false
	}
	switch c.Argument(0).String() {
	case "createDocument", "upsertDocument", "replaceDocument", "deleteDocument":
		if r.writes == maxWrites {
			return false
		}
		r.writes++
	}
	present := func(i int) []byte {
		if v := c.Argument(i); !goja.IsUndefined(v) {
			return []byte(v.String())
		}
		return nil
	}
	op := wire.Op{Name: c.Argument(0).String(), Link: c.Argument(1).String(), Body: present(2), Query: present(3),
		Options: present(4)}
	r.bytes += len(op.Link) + len(op.Body) + len(op.Query) + len(op.Options)
	r.ops = append(r.ops, op)
	return true
}

// logged appends a line to the log, as far as there is room.
func (r *programRun) logged(line string) {
	if r.log.Len() > 0 {
		line = "\n" + line
	}
	if room := maxLog - r.log.Len(); len(line) > room {
		line = strings.ToValidUTF8(line[:room], "")
	}
	r.log.WriteString(line)
}
