package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits are what a worker obeys from its start.
type Limits struct {
	Memory int64 // bytes
}

// Setting is what a worker must know about one run beyond the program.
type Setting struct {
	Now  time.Time // of a frozen clock; zero: the wall clock
	Time time.Duration
}

// Call is the evaluation of a function for a batch of argument lists.
type Call struct {
	Name, Source string
	Loose        bool     // the source isn't in strict mode
	Args         [][]byte // JSON arrays
}

// Reads says for each parameter of a function which properties it can read of an object there. nil: all. Objects that
// have only these properties give the same values. No name is empty or contains U+0000.
//
// Example: function f(d, n) { return d.price * n; } has [["price"], nil].
type Reads [][]string

// Answer is the answer to one Op: a Reply, or an Error.
type Answer struct {
	Reply Reply
	Err   *Error
}

// A writer collects the fields of a frame.
type fields [][]byte

func (f *fields) bytes(b []byte) { *f = append(*f, b) }
func (f *fields) text(s string)  { *f = append(*f, []byte(s)) }
func (f *fields) number(n int64) { *f = append(*f, strconv.AppendInt(nil, n, 10)) }
func (f *fields) boolean(b bool) { f.number(map[bool]int64{true: 1}[b]) }
func (f *fields) time(t time.Time) {
	if t.IsZero() {
		f.bytes(nil)
		return
	}
	f.number(t.UnixNano())
}

// A reader takes the fields of a frame in their order. The first fault stays.
type reader struct {
	rest [][]byte
	err  error
}

func (r *reader) bytes() []byte {
	if len(r.rest) == 0 {
		r.fail()
		return nil
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = fmt.Errorf("%w: a field is missing or has a wrong form", ErrFrame)
	}
}

func (r *reader) text() string { return string(r.bytes()) }

func (r *reader) number() int64 {
	n, err := strconv.ParseInt(string(r.bytes()), 10, 64)
	if err != nil {
		r.fail()
	}
	return n
}

func (r *reader) boolean() bool { return r.number() != 0 }

func (r *reader) time() time.Time {
	b := r.bytes()
	if b == nil {
		return time.Time{}
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		r.fail()
	}
	return time.Unix(0, n).UTC()
}

// end returns the first fault. All fields must have been taken.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%w: %d fields too many", ErrFrame, len(r.rest))
	}
	return r.err
}

// EncodeLimits makes the frame of l.
func EncodeLimits(l Limits) Frame {
	var f fields
	f.number(l.Memory)
	return Frame{TypeLimits, f}
}

// DecodeLimits reads the frame of Limits.
func DecodeLimits(f Frame) (Limits, error) {
	r := reader{rest: f.Fields}
	l := Limits{Memory: r.number()}
	return l, r.end()
}

func (f *fields) setting(s Setting) {
	f.time(s.Now)
	f.number(int64(s.Time))
}

func (r *reader) setting() Setting {
	return Setting{Now: r.time(), Time: time.Duration(r.number())}
}

// EncodeRun makes the frame of a run.
func EncodeRun(s Setting, run *Run) Frame {
	f := make(fields, 0, 16)
	f.setting(s)
	f.number(int64(run.Kind))
	f.text(run.Name)
	f.text(run.Source)
	f.bytes(run.Args)
	f.text(run.Links.Self)
	f.text(run.Links.Alt)
	f.boolean(run.Log)
	f.message(run.Request)
	f.message(run.Response)
	return Frame{TypeRun, f}
}

// DecodeRun reads the frame of a run.
func DecodeRun(f Frame) (Setting, *Run, error) {
	r := reader{rest: f.Fields}
	s := r.setting()
	run := &Run{Kind: Kind(r.number()), Name: r.text(), Source: r.text(), Args: r.bytes(), //nolint:gosec // one of four
		Links: Links{Self: r.text(), Alt: r.text()}, Log: r.boolean(), Request: r.message(), Response: r.message()}
	return s, run, r.end()
}

// message appends m, or an absent field.
func (f *fields) message(m *Message) {
	if m == nil {
		f.bytes(nil)
		return
	}
	f.text(m.Operation)
	f.bytes(m.Body)
	f.number(int64(len(m.Headers)))
	for _, h := range m.Headers {
		f.text(h.Name)
		f.text(h.Value)
	}
}

func (r *reader) message() *Message {
	operation := r.bytes()
	if operation == nil {
		return nil
	}
	m := &Message{Operation: string(operation), Body: r.bytes()}
	for n := r.number(); n > 0 && r.err == nil; n-- {
		m.Headers = append(m.Headers, Header{Name: r.text(), Value: r.text()})
	}
	return m
}

// EncodeCall makes the frame of a batch of calls of a function.
func EncodeCall(s Setting, c Call) Frame {
	f := make(fields, 0, 5+len(c.Args))
	f.setting(s)
	f.text(c.Name)
	f.text(c.Source)
	mode := ""
	if c.Loose {
		mode = loose
	}
	f.text(mode)
	return Frame{TypeCall, append(f, c.Args...)}
}

// DecodeCall reads the frame of a batch of calls.
func DecodeCall(f Frame) (Setting, Call, error) {
	r := reader{rest: f.Fields}
	s, c := r.setting(), Call{Name: r.text(), Source: r.text(), Loose: r.text() == loose}
	c.Args = r.rest
	return s, c, r.err
}

// loose is the mode of a source that isn't in strict mode.
const loose = "loose"

// EncodeOps makes the frame of operations that a program asks for.
func EncodeOps(ops []Op) Frame {
	f := make(fields, 0, 5*len(ops))
	for _, op := range ops {
		f.text(op.Name)
		f.text(op.Link)
		f.bytes(op.Body)
		f.bytes(op.Query)
		f.bytes(op.Options)
	}
	return Frame{TypeOps, f}
}

// DecodeOps reads the frame of operations.
func DecodeOps(f Frame) ([]Op, error) {
	r := reader{rest: f.Fields}
	var ops []Op
	for len(r.rest) > 0 && r.err == nil {
		ops = append(ops, Op{Name: r.text(), Link: r.text(), Body: r.bytes(), Query: r.bytes(), Options: r.bytes()})
	}
	return ops, r.err
}

// EncodeAnswers makes the frame of the answers to operations.
func EncodeAnswers(answers []Answer) Frame {
	f := make(fields, 0, 6*len(answers))
	for _, a := range answers {
		e := a.Err
		if e == nil {
			e = &Error{}
		}
		f.number(int64(e.Status))
		f.number(int64(e.Sub))
		f.text(e.Body)
		f.bytes(a.Reply.Body)
		f.bytes(a.Reply.Options)
		f.text(a.Reply.ETag)
	}
	return Frame{TypeAnswers, f}
}

// DecodeAnswers reads the frame of answers.
func DecodeAnswers(f Frame) ([]Answer, error) {
	r := reader{rest: f.Fields}
	var answers []Answer
	for len(r.rest) > 0 && r.err == nil {
		var a Answer
		e := Error{Status: int(r.number()), Sub: int(r.number()), Body: r.text()}
		if e.Status != 0 {
			a.Err = &e
		}
		a.Reply = Reply{Body: r.bytes(), Options: r.bytes(), ETag: r.text()}
		answers = append(answers, a)
	}
	return answers, r.err
}

// EncodeDone makes the frame of what a run leaves. The worker ends after it if last is set.
func EncodeDone(result Result, last bool) Frame {
	var f fields
	f.boolean(last)
	f.bytes(result.Body)
	f.bytes(result.Request)
	f.bytes(result.Response)
	f.text(result.Log)
	return Frame{TypeDone, f}
}

// DecodeDone reads the frame of what a run leaves.
func DecodeDone(f Frame) (result Result, last bool, err error) {
	r := reader{rest: f.Fields}
	last = r.boolean()
	result = Result{Body: r.bytes(), Request: r.bytes(), Response: r.bytes(), Log: r.text()}
	return result, last, r.end()
}

// EncodeValues makes the frame of a function's values. reads is what the function can read of its arguments (Reads).
// The worker ends after it if last is set.
func EncodeValues(values [][]byte, reads Reads, last bool) Frame {
	f := make(fields, 0, 3+len(reads)+len(values))
	f.boolean(last)
	f.number(int64(len(reads)))
	for _, properties := range reads {
		if properties == nil {
			f.bytes(nil)
			continue
		}
		f.text(strings.Join(properties, "\x00"))
	}
	return Frame{TypeValues, append(f, values...)}
}

// DecodeValues reads the frame of a function's values.
func DecodeValues(f Frame) (values [][]byte, reads Reads, last bool, err error) {
	r := reader{rest: f.Fields}
	last = r.boolean()
	for n := r.number(); n > 0 && r.err == nil; n-- {
		switch b := r.bytes(); {
		case b == nil:
			reads = append(reads, nil)
		case len(b) == 0:
			reads = append(reads, []string{})
		default:
			reads = append(reads, strings.Split(string(b), "\x00"))
		}
	}
	return r.rest, reads, last, r.err
}

// EncodeFault makes the frame of a run's failure. The worker ends after it if last is set.
func EncodeFault(e *Error, last bool) Frame {
	var f fields
	f.boolean(last)
	f.number(int64(e.Status))
	f.number(int64(e.Sub))
	f.text(e.Body)
	f.text(e.Log)
	f.boolean(e.Exceeded)
	return Frame{TypeFault, f}
}

// DecodeFault reads the frame of a run's failure.
func DecodeFault(f Frame) (e *Error, last bool, err error) {
	r := reader{rest: f.Fields}
	last = r.boolean()
	e = &Error{Status: int(r.number()), Sub: int(r.number()), Body: r.text(), Log: r.text(), Exceeded: r.boolean()}
	return e, last, r.end()
}
