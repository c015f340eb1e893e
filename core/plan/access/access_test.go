package access

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// fake is a Source whose answers a test file sets.
type fake struct {
	pol      *index.Policy
	ready    bool
	elements map[string]bool
	foreign  bool
	ttl      bool
	graph    bool
	complete map[string]bool
	share    map[string]float64
	keys     [][]string
	marks    map[uint64]bool // path ids in the sets of slots' heads
}

func (f *fake) Policy() *index.Policy          { return f.pol }
func (f *fake) IndexReady() bool               { return f.ready }
func (f *fake) KeyPaths() [][]string           { return f.keys }
func (f *fake) MayHoldForeign() bool           { return f.foreign }
func (f *fake) MayHoldInColumn(id uint64) bool { return f.marks[id] }
func (f *fake) InOrder(p Path) bool            { return !f.MayHoldElements(p) }
func (f *fake) MayHoldGraphForm() bool {
	return f.graph
}
func (f *fake) KeysMayBeForeign() bool {
	return f.foreign
}
func (f *fake) MayHoldElements(p Path) bool { return f.elements[strings.Join(p.Segs, ".")] }
func (f *fake) Coverable() bool             { return !f.ttl }
func (f *fake) InOneClass(p Path) bool      { return f.complete[strings.Join(p.Segs, ".")] }
func (f *fake) EveryItemHas(p Path) bool    { return f.complete[strings.Join(p.Segs, ".")] }
func (f *fake) NamesEveryItem(p Path) bool {
	return isAlways(p) || f.complete[strings.Join(p.Segs, ".")]
}
func isAlways(p Path) bool { return len(p.Segs) == 1 && p.Segs[0] == "_id" }
func (f *fake) Share(p *Pred) float64 {
	if s, ok := f.share[strings.Join(p.Path.Segs, ".")]; ok {
		return s
	}
	return 0.01
}

// parse reads a predicate of the test files: (and P..), (or P..), (eq path json..), (range path lo hi), (prefix path
// text), (exists path), all, none. A bound is [5 or (5 or -; a path with [] at its end counts elements; (foreign P) and
// (any P) set the flags.
func parse(t *testing.T, s string) *Pred {
	toks := strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(s))
	var read func() *Pred
	next := func() string {
		if len(toks) == 0 {
			t.Fatalf("%s ends early", s)
		}
		tok := toks[0]
		toks = toks[1:]
		return tok
	}
	path := func() Path {
		name := next()
		p := NewPath(strings.Split(strings.TrimSuffix(name, "[]"), ".")...)
		if strings.HasSuffix(name, "[]") {
			p = p.Element()
		}
		return p
	}
	val := func(text string) value.Value {
		if text == "undefined" {
			return value.Undef()
		}
		v, err := doc.ValueFromJSON([]byte(strings.ReplaceAll(text, "_", " ")))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return v
	}
	bound := func(text string) *Bound {
		if text == "-" {
			return nil
		}
		return &Bound{Value: val(strings.TrimPrefix(text, "=")), Inclusive: text[0] == '='}
	}
	read = func() *Pred {
		switch tok := next(); tok {
		case "all":
			return All()
		case "none":
			return None()
		case "(":
		default:
			t.Fatalf("%s: %s", s, tok)
		}
		op := next()
		var p *Pred
		switch op {
		case "and", "or":
			var kids []*Pred
			for toks[0] != ")" {
				kids = append(kids, read())
			}
			if p = And(kids...); op == "or" {
				p = Or(kids...)
			}
		case "eq":
			at := path()
			var vs []value.Value
			for toks[0] != ")" {
				vs = append(vs, val(next()))
			}
			p = In(at, vs...)
		case "range":
			at := path()
			lo, hi := bound(next()), bound(next())
			p = Range(at, lo, hi)
		case "prefix":
			at := path()
			p = Prefix(at, next())
		case "exists":
			p = Exists(path())
		case "foreign":
			p = WithForeign(read())
		case "any":
			p = read()
			p.Any = true
		default:
			t.Fatalf("%s: %s", s, op)
		}
		next()
		return p
	}
	return read()
}

// text shows a predicate the way parse reads it.
func text(p *Pred) string {
	name := p.Path.String()
	bound := func(b *Bound) string {
		if b == nil {
			return "-"
		}
		return strings.Repeat("=", map[bool]int{true: 1}[b.Inclusive]) + string(doc.AppendJSON(nil, b.Value))
	}
	var parts []string
	switch p.Op {
	case OpAll, OpNone:
		return []string{"all", "none"}[p.Op]
	case OpAnd, OpOr:
		for _, k := range p.Kids {
			parts = append(parts, text(k))
		}
		return fmt.Sprintf("(%s %s)", []string{"and", "or"}[p.Op-OpAnd], strings.Join(parts, " "))
	case OpIn:
		for _, v := range p.Vals {
			parts = append(parts, string(doc.AppendJSON(nil, v)))
		}
		return fmt.Sprintf("(eq %s %s)", name, strings.Join(parts, " "))
	case OpRange:
		return fmt.Sprintf("(range %s %s %s)", name, bound(p.Lo), bound(p.Hi))
	case OpPrefix:
		return fmt.Sprintf("(prefix %s %s)", name, p.Str)
	case OpExists:
		return fmt.Sprintf("(exists %s)", name)
	}
	return fmt.Sprintf("(every %s)", name)
}

// TestChoose asserts the access paths of testdata/choose. Commands: source sets what is known of the container, plan
// prints the access path of a filter.
func TestChoose(t *testing.T) {
	datadriven.RunTest(t, "testdata/choose", func(t *testing.T, d *datadriven.TestData) string {
		src := &fake{ready: true, elements: map[string]bool{}, complete: map[string]bool{}, share: map[string]float64{},
			keys: [][]string{{"pk"}}}
		r := Request{}
		policy := ""
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "policy":
				policy = strings.Join(a.Vals, ",")
			case "elements":
				for _, v := range a.Vals {
					src.elements[v] = true
				}
			case "complete":
				src.complete[a.Vals[0]] = true
			case "foreign":
				src.foreign = true
			case "graph":
				src.graph = true
			case "rebuilding":
				src.ready = false
			case "share":
				for _, v := range a.Vals {
					name, n, _ := strings.Cut(v, ":")
					src.share[name], _ = strconv.ParseFloat(n, 64)
				}
			case "keys":
				src.keys = nil
				for _, v := range a.Vals {
					src.keys = append(src.keys, strings.Split(v, "."))
				}
			case "order":
				for _, v := range a.Vals {
					r.OrderBy = append(r.OrderBy, NewPath(strings.Split(v, ".")...))
				}
			case "inpartition":
				r.HasPK = true
			case "scan":
				r.Want = SigScan
			case "needs":
				for _, v := range a.Vals {
					r.Needs = append(r.Needs, NewPath(strings.Split(v, ".")...))
				}
			case "limit":
				r.Limit, _ = strconv.Atoi(a.Vals[0])
			case "whole":
				r.Whole = true
			case "ttl":
				src.ttl = true
			case "items":
				r.Items, _ = strconv.ParseInt(a.Vals[0], 10, 64)
			default:
				d.Fatalf(t, "unknown argument %s", a.Key)
			}
		}
		var err error
		if src.pol, err = index.Compile([]byte(map[string]string{"": "", "none": `{"indexingMode":"none"}`,
			"b": `{"includedPaths":[{"path":"/b/?"}],"excludedPaths":[{"path":"/*"}]}`}[policy]), 1); err != nil {
			t.Fatal(err)
		}
		r.Pred = parse(t, d.Input)
		p := Choose(src, r)
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n", p.Explain())
		if p.Leaf != nil {
			fmt.Fprintf(&b, "  %s\n", text(p.Leaf))
		}
		for _, l := range append(p.Union, p.Both...) {
			fmt.Fprintf(&b, "  %s\n", text(l))
		}
		for _, k := range p.Keys {
			b.WriteString(" ")
			for _, v := range append(k.PK, k.ID) {
				if v.IsDefined() {
					b.WriteString(" " + string(doc.AppendJSON(nil, v)))
				}
			}
			b.WriteString("\n")
		}
		return b.String()
	})
}

// values are one of everything that can stand at a path, those that tempt an encoding among them.
func values(t *testing.T) []value.Value {
	long := strings.Repeat("x", 256)
	vs := []value.Value{value.NullValue(), value.BoolOf(false), value.BoolOf(true), value.MinKeyValue(),
		value.MaxKeyValue(),
		value.Int32Of(0), value.Int32Of(-1), value.Int32Of(5), value.Int64Of(1<<53 + 1), value.Int64Of(1<<53 + 2),
		value.DoubleOf(1 << 53),
		value.DoubleOf(0), value.DoubleOf(1.5), value.DateOf(5, 0), value.DateOf(5, 1), value.TimestampOf(7),
		value.ObjectIDOf(make([]byte, 12)), value.UUIDOf(make([]byte, 16)), value.BinaryOf(0, nil),
		value.BinaryOf(0, make([]byte, 300))}
	vs = append(vs, value.DoubleOf(-1*vs[11].Float())) // -0
	for _, s := range []string{"", "a", "a\x00", "a\x00b", "ab", "b", long, long + "a", long + "b", long[:255] + "y"} {
		vs = append(vs, value.StringOf(s))
	}
	for _, text := range []string{"9007199254740993.000000000000000001", "9007199254740993.5", "0.1", "1E-30"} {
		v, err := doc.ValueFromExtJSON([]byte(`{"$numberDecimal":"` + text + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
	}
	for _, text := range []string{"[]", "[1]", "[[1]]", "{}", `{"a":1}`} {
		v, err := doc.ValueFromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
	}
	return vs
}

// Every value that satisfies a leaf has its entry in the leaf's intervals: for all pairs of value and bound.
func TestIntervalsHoldEverything(t *testing.T) {
	vs := values(t)
	at := NewPath("p")
	for _, v := range vs {
		e, _ := keys.AppendIndex(nil, v)
		holds := func(p *Pred) bool {
			ivs, _, ok := p.Intervals()
			if !ok {
				t.Fatalf("%s has no intervals", text(p))
			}
			for i := 1; i < len(ivs); i++ {
				if string(ivs[i-1].Hi) > string(ivs[i].Lo) {
					t.Fatalf("%s: intervals overlap", text(p))
				}
			}
			return Within(ivs, e)
		}
		if !holds(Exists(at)) {
			t.Errorf("%s doesn't exist", doc.AppendJSON(nil, v))
		}
		if !holds(&Pred{Op: opEvery, Path: at}) {
			t.Errorf("%s is not among all", doc.AppendJSON(nil, v))
		}
		for _, b := range vs {
			c, same := value.CompareCosmos(v, b), v.Class() == b.Class()
			for _, p := range []struct {
				pred *Pred
				want bool
			}{
				{Eq(at, b), c == 0},
				{In(at, value.StringOf("other"), b, b), c == 0},
				{Range(at, &Bound{b, true}, nil), c >= 0 && same},
				{Range(at, &Bound{b, false}, nil), c > 0 && same},
				{Range(at, nil, &Bound{b, true}), c <= 0 && same},
				{Range(at, nil, &Bound{b, false}), c < 0 && same},
				{&Pred{Op: OpRange, Path: at, Lo: &Bound{b, false}, Any: true}, c > 0},
				{&Pred{Op: OpRange, Path: at, Hi: &Bound{b, false}, Any: true}, c < 0},
			} {
				if p.want && !holds(p.pred) {
					t.Errorf("%s misses %s", text(p.pred), doc.AppendExtJSON(nil, v, true))
				}
				if p.want && !holds(WithForeign(p.pred)) {
					t.Errorf("foreign %s misses %s", text(p.pred), doc.AppendExtJSON(nil, v, true))
				}
			}
			if b.Kind() == value.String && v.Kind() == value.String && strings.HasPrefix(v.Str(), b.Str()) &&
				!holds(Prefix(at, b.Str())) {
				t.Errorf("prefix %.10q misses %.10q", b.Str(), v.Str())
			}
		}
		// A language that reads other kinds as strings finds them with Foreign.
		switch v.Kind() {
		case value.Date, value.UUID, value.Binary, value.ObjectID, value.Timestamp:
			for _, p := range []*Pred{Eq(at, value.StringOf("a")), Prefix(at, "a"),
				Range(at, &Bound{value.StringOf("a"), true}, nil)} {
				if !holds(WithForeign(p)) {
					t.Errorf("foreign %s misses %s", text(p), doc.AppendExtJSON(nil, v, true))
				}
			}
		}
	}
	if _, _, ok := Eq(at, value.Undef()).Intervals(); ok {
		t.Error("the index answers for items without the path")
	}
}

// A leaf's signature tells orders apart: paths, operators and intervals.
func TestSignatures(t *testing.T) {
	seen := map[uint32]string{}
	for _, s := range []string{"(eq a 1)", "(eq a 2)", "(eq a[] 1)", "(eq b 1)", "(range a =1 -)", "(range a 1 -)",
		"(range a - 1)", "(prefix a x)", "(exists a)",
		"(foreign (eq a \"x\"))", "(eq a \"x\")"} {
		p := parse(t, s)
		sig := (&Plan{Kind: Index, Leaf: p}).Signature()
		if other, taken := seen[sig]; taken {
			t.Errorf("%s has the signature of %s", s, other)
		}
		seen[sig] = s
		if Find(And(Exists(NewPath("z")), p), sig) == nil {
			t.Errorf("%s is not found again", s)
		}
	}
}
