package expr

import (
	"context"
	_ "embed" // script.js
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Scripts runs JavaScript outside of the server's process, within limits of time and memory. The server's main gives
// one to the API.
type Scripts interface {
	// Call calls the function whose text is source with a list of arguments, a JSON array, and returns its value as
	// JSON. It returns a *ScriptError for what the function or its limits did.
	Call(ctx context.Context, source string, args []byte) ([]byte, error)
}

// ScriptError is the failure of a program.
type ScriptError struct {
	Text string
	Late bool // it ran longer than it may
}

// Error implements error.
func (e *ScriptError) Error() string { return e.Text }

// Scripting allows JavaScript. Without a call it is off.
func (r *Run) Scripting(s Scripts) { r.scripts = s }

// Scripts reports whether JavaScript is on.
func (r *Run) Scripts() bool { return r != nil && r.scripts != nil }

//go:embed script.js
var scriptTypes string

//go:embed scripthelpers.js
var scriptHelpers string

// namesHelper finds the programs that need scriptHelpers.
var namesHelper = regexp.MustCompile(`\b(` + strings.Join(helperNames(), "|") + `)\b`)

// helperNames returns what scriptHelpers defines: its functions, and Array, which it extends.
func helperNames() []string {
	names := []string{"Array"}
	for _, m := range regexp.MustCompile(`(?m)^function (\w+)\(`).FindAllStringSubmatch(scriptHelpers, -1) {
		names = append(names, m[1])
	}
	return names
}

// Script is a function of a client.
type Script struct {
	code  string
	scope string // statements that define its variables
	text  bool   // code is what Expression makes a function of
}

// NewScript returns the function of a $function, $where or mapReduce: a string, or code without a scope. ok is false
// for other values.
func NewScript(v value.Value) (s Script, ok bool) {
	if v.Kind() != value.String && v.Kind() != value.Code {
		return s, false
	}
	return Script{code: string(v.Bytes())}, true
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// With returns the script with variables. Names that are no identifiers are left out: a program can't use them.
func (s Script) With(scope value.Value) Script {
	for it := scope.Iter(); it.Next(); {
		if identifier.Match(it.Key()) {
			s.scope += "var " + string(it.Key()) + " = decode$(" + string(appendJS(nil, it.Value())) + ");\n"
		}
	}
	return s
}

// Expression makes a function of a text that is one, the body of one, or statements: then the last has its value.
func (s Script) Expression() Script {
	s.text = true
	return s
}

// Values calls the function once for each list of arguments. The first element of a list is its this.
func (r *Run) Values(s Script, calls []value.Value) ([]value.Value, error) {
	out, err := r.script(s, "return calls.map(function (c) {\nc = decode$(c); obj = c[0];\n"+
		"return encode$(f.apply(c[0], c.slice(1)));\n});", calls)
	if err == nil && len(out) != len(calls) {
		err = merr.New(merr.InternalError, "a program returned %d values for %d calls", len(out), len(calls))
	}
	return out, err
}

// Emits calls the function once for each list of arguments and returns what it gave to emit: arrays of key and value.
func (r *Run) Emits(s Script, calls []value.Value) ([]value.Value, error) {
	return r.script(s, "calls.forEach(function (c) {\nc = decode$(c); obj = c[0];\nf.apply(c[0], c.slice(1));\n});\n"+
		"return emitted$;", calls)
}

// Fold calls the function with each list of arguments behind a state, which becomes the value of the call before.
func (r *Run) Fold(s Script, state value.Value, calls []value.Value) (value.Value, error) {
	first := value.MakeArray([]value.Value{state})
	out, err := r.script(s, "var state = decode$(calls[0])[0];\ncalls.slice(1).forEach(function (c) {\n"+
		"state = f.apply(null, [state].concat(decode$(c)));\n});\nreturn [encode$(state)];",
		append([]value.Value{first}, calls...))
	if err != nil || len(out) != 1 {
		return value.Undef(), err
	}
	return out[0], nil
}

// script runs a program: the types, the client's function as f, and a main part.
func (r *Run) script(s Script, main string, calls []value.Value) ([]value.Value, error) {
	if !r.Scripts() {
		return nil, merr.New(31264, "Cannot run server-side javascript without the javascript engine enabled")
	}
	helpers := ""
	if namesHelper.MatchString(s.code) || namesHelper.MatchString(s.scope) {
		helpers = scriptHelpers
	}
	code := s.code
	if s.text {
		code = "function$(" + string(doc.AppendExtJSON(nil, value.StringOf(s.code), true)) + ")"
	}
	source := "function (calls) {\n" + scriptTypes + helpers + "var obj, emitted$ = [];\n" +
		"function emit(k, v) { emitted$.push([encode$(k), encode$(v)]); }\n" + s.scope +
		"var f = (" + code + "\n);\n" + main + "\n}"
	args := append([]byte(nil), "[["...)
	for i, c := range calls {
		if i > 0 {
			args = append(args, ',')
		}
		args = appendJS(args, c)
	}
	args = append(args, "]]"...)
	if err := r.mem.Grow(int64(len(args))); err != nil {
		return nil, err
	}
	defer r.mem.Shrink(int64(len(args)))
	out, err := r.scripts.Call(r.ctx, source, args)
	if err != nil {
		if e, ok := err.(*ScriptError); ok {
			if e.Late {
				return nil, merr.New(merr.MaxTimeMSExpired, "%s", e.Text)
			}
			return nil, merr.New(merr.ScriptFailure, "%s", e.Text)
		}
		return nil, err
	}
	var list []json.RawMessage
	if json.Unmarshal(out, &list) != nil {
		return nil, merr.New(merr.InternalError, "a program's values can't be read")
	}
	vs := make([]value.Value, len(list))
	for i, raw := range list {
		if vs[i], err = doc.ValueFromExtJSON(raw); err != nil {
			return nil, merr.New(merr.ScriptFailure, "a value of the program can't be stored: %s", err)
		}
	}
	return vs, nil
}

// appendJS appends a value as a program gets it. Whole numbers up to 2^53 are numbers, larger ones NumberLong.
func appendJS(dst []byte, v value.Value) []byte {
	switch v.Kind() {
	case value.Undefined:
		return append(dst, `{"$undefined":true}`...)
	case value.Object:
		dst = append(dst, '{')
		sep := ""
		for it := v.Iter(); it.Next(); sep = "," {
			dst = append(dst, sep...)
			dst = doc.AppendExtJSON(dst, value.StringBytes(it.Key()), true)
			dst = appendJS(append(dst, ':'), it.Value())
		}
		return append(dst, '}')
	case value.Array:
		dst = append(dst, '[')
		sep := ""
		for it := v.Iter(); it.Next(); sep = "," {
			dst = appendJS(append(dst, sep...), it.Value())
		}
		return append(dst, ']')
	case value.Int32:
		return strconv.AppendInt(dst, v.Int(), 10)
	case value.Int64:
		if n := v.Int(); n > 1<<53 || n < -1<<53 {
			return append(strconv.AppendInt(append(dst, `{"$numberLong":"`...), n, 10), `"}`...)
		}
		return strconv.AppendInt(dst, v.Int(), 10)
	case value.Double:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.AppendFloat(dst, f, 'g', -1, 64)
		}
	case value.Date:
		return append(strconv.AppendInt(append(dst, `{"$date":`...), v.DateMS(), 10), '}')
	}
	return doc.AppendExtJSON(dst, v, true)
}

// functionOp compiles $function.
func functionOp(_ string, arg value.Value, s *Scope, depth int) (Expr, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.FailedToParse, "$function requires an object as an argument, found: %s",
			TypeName(arg))
	}
	for it := arg.Iter(); it.Next(); {
		switch string(it.Key()) {
		case "body", "args", "lang":
		default:
			return nil, merr.New(merr.UnknownField, "BSON field '$function.%s' is an unknown field.", it.Key())
		}
	}
	body, args, lang := arg.Get("body"), arg.Get("args"), arg.Get("lang")
	script, ok := NewScript(body)
	switch {
	case !body.IsDefined():
		return nil, merr.New(31260, "The body function must be specified.")
	case !ok:
		return nil, merr.New(31262, "The body function must evaluate to type string or code")
	case !args.IsDefined():
		return nil, merr.New(31263, "The args field must be specified.")
	case args.Kind() != value.Array:
		return nil, merr.New(31266, "The args field must be of type array")
	case !lang.IsDefined():
		return nil, merr.New(31418, "The lang field must be specified.")
	case lang.Str() != "js":
		return nil, merr.New(31419, "Currently the only supported language specifier is 'js'.")
	}
	xs, err := arguments(args, s, depth)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (value.Value, error) {
		at, b := bson.Begin(nil)
		b = value.AppendIndexed(b, 0, value.NullValue())
		for i, x := range xs {
			v, err := x(e)
			if err != nil {
				return v, err
			}
			if !v.IsDefined() {
				v = value.NullValue()
			}
			b = value.AppendIndexed(b, i+1, v)
		}
		out, err := e.Run.Values(script, []value.Value{value.ArrayOf(bson.End(b, at))})
		if err != nil {
			return value.Undef(), err
		}
		return out[0], nil
	}, nil
}
