// Package failpoint has the places where a test can make the server fail, as MongoDB's command configureFailPoint sets
// them. The tests of drivers need them: a driver shows that it repeats a write by a server that has failed once.
//
// Example: {configureFailPoint: "failCommand", mode: {times: 2}, data: {failCommands: ["insert"], errorCode: 91}} makes
// the next two inserts fail with code 91. Both look the same to the driver as a server that shuts down.
package failpoint

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// Place is where a fail point acts.
type Place int

// The places, with MongoDB's names for them.
const (
	Command Place = iota // failCommand: before a command, or in its reply
	Write                // onPrimaryTransactionalWrite: a statement of a retryable write
	GetMore              // failGetMoreAfterCursorCheckout: a getMore that has found its cursor
	MaxTime              // maxTimeAlwaysTimeOut: a command whose time is limited by its client, which is over at once
	places
)

// names are the names of the places.
var names = map[string]Place{
	"failCommand": Command, "onPrimaryTransactionalWrite": Write, "failGetMoreAfterCursorCheckout": GetMore,
	"maxTimeAlwaysTimeOut": MaxTime,
}

// Event is what happens at a place.
type Event struct {
	Command   string // the command's name
	App       string // the name that the client gave itself
	Namespace string // database.collection, "" if the command has none
}

// Failure is what a fail point does.
type Failure struct {
	Block  time.Duration // wait before anything else
	Close  bool          // close the connection without a reply
	Code   int32         // the error; 0 = none
	Extra  []byte        // BSON elements for the error's reply
	Labels []string      // the labels of the error or of the reply, if Labelled
	// Labelled means that the reply has exactly Labels, whatever its code is.
	Labelled bool
	// Concern is the writeConcernError of the reply of a command that is executed; undefined = none.
	Concern value.Value
}

// Set are the fail points of a server. The zero value has none. Safe for concurrent use.
type Set struct {
	on atomic.Int32 // the number of points that are set
	mu sync.Mutex
	at [places]*point
}

// On reports whether any fail point is set.
func (s *Set) On() bool { return s.on.Load() > 0 }

// Hit returns what the fail point of a place does at an event; nil = nothing. It counts the event.
func (s *Set) Hit(at Place, e Event) *Failure {
	if !s.On() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.at[at]
	if p == nil || !p.selects(e) || !p.turn() {
		return nil
	}
	p.count++
	f := p.Failure
	return &f
}

// Configure executes configureFailPoint. random returns a number in [0, 1). It returns how often the fail point had
// acted before.
func (s *Set) Configure(cmd value.Value, random func() float64) (count int64, err error) {
	at, ok := names[cmd.Get("configureFailPoint").Str()]
	if !ok {
		return 0, merr.New(merr.FailPointSetFailed, "Fail point %q not found", cmd.Get("configureFailPoint").Str())
	}
	p := &point{random: random, all: at != Command, commands: map[string]bool{}}
	p.Close = at == Write // unless data says otherwise
	off, err := p.readMode(cmd.Get("mode"))
	if err != nil {
		return 0, err
	}
	if err := p.readData(at, cmd.Get("data").Clone()); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.at[at]; was != nil {
		count = was.count
		s.on.Add(-1)
	}
	s.at[at] = nil
	if !off {
		s.at[at] = p
		s.on.Add(1)
	}
	return count, nil
}

// point is one fail point that is set.
type point struct {
	Failure
	count int64 // how often it has acted

	// The mode. It passes skip events, and then acts left times; -1 = always.
	skip, left int64
	chance     float64 // of acting at an event; 0 = it always acts
	random     func() float64

	// The events that it selects.
	all       bool
	commands  map[string]bool
	app       string
	namespace string
}

// selects reports whether the point is meant for an event.
func (p *point) selects(e Event) bool {
	return (p.all || p.commands[e.Command]) && (p.app == "" || p.app == e.App) &&
		(p.namespace == "" || p.namespace == e.Namespace)
}

// turn counts an event and reports whether the point acts.
func (p *point) turn() bool {
	switch {
	case p.skip > 0:
		p.skip--
		return false
	case p.left == 0:
		return false
	case p.left > 0:
		p.left--
	}
	return p.chance == 0 || p.random() < p.chance
}

// readMode reads the argument mode.
func (p *point) readMode(v value.Value) (off bool, err error) {
	p.left = -1
	if v.Kind() == value.String {
		switch v.Str() {
		case "off":
			return true, nil
		case "alwaysOn":
			return false, nil
		}
		return false, merr.New(merr.BadValue, "unknown mode: %s", v.Str())
	}
	if v.Kind() != value.Object {
		return false, merr.New(merr.TypeMismatch, "'mode' must be a string or JSON object")
	}
	for it := v.Iter(); it.Next(); {
		x := it.Value()
		n, whole := num.ToInt64(x, true)
		switch key := string(it.Key()); {
		case key == "activationProbability" && x.IsNumber():
			if p.chance = num.ToFloat(x); !(p.chance > 0 && p.chance <= 1) {
				return false, merr.New(merr.BadValue, "activationProbability must be between 0.0 and 1.0; found %v",
					p.chance)
			}
		case key != "times" && key != "skip":
			return false, merr.New(merr.BadValue, "'mode' must be one of 'off', 'alwaysOn', 'times', 'skip' and "+
				"'activationProbability'")
		case !whole || n < 0:
			return false, merr.New(merr.BadValue, "'%s' option to 'mode' must be a positive integer", key)
		case key == "times":
			p.left = n
		default:
			p.skip = n
		}
	}
	return p.left == 0, nil
}

// field is a field of the argument data: its type in words, the kinds that it may have, and how it is read.
type field struct {
	types string
	ok    func(value.Value) bool
	read  func(*point, value.Value)
}

func is(k value.Kind) func(value.Value) bool {
	return func(v value.Value) bool { return v.Kind() == k }
}

// fields are the fields of data by place.
var fields = [places]map[string]field{
	Command: {
		"failCommands": {"array", is(value.Array), func(p *point, v value.Value) {
			for _, s := range texts(v) {
				p.commands[s] = true
			}
		}},
		"failAllCommands": {"bool", is(value.Bool), func(p *point, v value.Value) { p.all = v.Bool() }},
		// No command of this server comes from another server.
		"failInternalCommands": {"bool", is(value.Bool), func(*point, value.Value) {}},
		"appName":              {"string", is(value.String), func(p *point, v value.Value) { p.app = v.Str() }},
		"namespace":            {"string", is(value.String), func(p *point, v value.Value) { p.namespace = v.Str() }},
		"blockConnection":      {"bool", is(value.Bool), func(*point, value.Value) {}}, // readData reads it
		"blockTimeMS": {"number", value.Value.IsNumber, func(p *point, v value.Value) {
			p.Block = time.Duration(millis(v)) * time.Millisecond
		}},
		"closeConnection":   closing,
		"errorCode":         coded,
		"errorExtraInfo":    {"object", is(value.Object), func(p *point, v value.Value) { p.Extra = elements(v) }},
		"writeConcernError": {"object", is(value.Object), func(p *point, v value.Value) { p.Concern = v }},
		"errorLabels": {"array", is(value.Array), func(p *point, v value.Value) {
			p.Labelled, p.Labels = true, texts(v)
		}},
	},
	Write: {
		"closeConnection": closing,
		// The statement fails, and nothing is written.
		"failBeforeCommitExceptionCode": coded,
	},
	GetMore: {"closeConnection": closing, "errorCode": coded},
}

var (
	closing = field{"bool", is(value.Bool), func(p *point, v value.Value) { p.Close = v.Bool() }}
	coded   = field{"number", value.Value.IsNumber, func(p *point, v value.Value) { p.Code = int32(millis(v)) }}
)

// readData reads the argument data.
func (p *point) readData(at Place, d value.Value) error {
	if !d.IsDefined() {
		return nil
	}
	if d.Kind() != value.Object {
		return merr.New(merr.TypeMismatch, "'data' must be an object, but found: %s", expr.TypeName(d))
	}
	for it := d.Iter(); it.Next(); {
		f, ok := fields[at][string(it.Key())]
		if !ok {
			return merr.NotSupported("the field '" + string(it.Key()) + "' of a fail point's data")
		}
		if !f.ok(it.Value()) {
			return merr.New(merr.TypeMismatch, "the field '%s' of a fail point's data must be of type %s, but found: "+
				"%s", it.Key(), f.types, expr.TypeName(it.Value()))
		}
		f.read(p, it.Value())
	}
	if !d.Get("blockConnection").Bool() {
		p.Block = 0
	}
	return nil
}

// millis returns a number as a non-negative 32-bit one.
func millis(v value.Value) int64 {
	n, _ := num.ToInt64(v, true)
	return min(max(n, 0), 1<<31-1)
}

// texts returns the strings of an array.
func texts(v value.Value) (out []string) {
	for _, e := range value.Elements(v) {
		out = append(out, e.Str())
	}
	return out
}

// elements returns the elements of an object.
func elements(v value.Value) []byte {
	b := v.Bytes()
	return b[4 : len(b)-1]
}
