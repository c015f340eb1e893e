package plan

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// fake is a Stats with answers that a test sets. Expensive questions are recorded in asked.
type fake struct {
	pol      *index.Policy
	ready    bool
	elements map[string]bool
	foreign  bool
	ttl      bool
	graph    bool
	complete map[string]bool
	named    map[string]bool // all items have a value, but of several classes
	texts    bool
	untold   bool // it is unknown how many items have a value
	mixedIDs bool
	share    map[string]float64
	keys     [][]string
	marks    map[uint64]bool // path ids in the sets of the slots' heads
	items    int64
	inKey    int64
	inSlot   int64
	slots    int
	entries  int   // named entries, or entries in a slot
	stretch  int64 // 0: items
	asked    []string
	// passed and hits are those of a walk in key order, see Turn.
	passed, hits int64
	// unnumbered says that slots have no number entries.
	unnumbered bool
	// explained are the leaves that were counted for EXPLAIN, with the limit.
	explained []string
}

func (f *fake) Policy() *index.Policy { return f.pol }
func (f *fake) IndexReady() bool      { return f.ready }
func (f *fake) KeyPaths() [][]string  { return f.keys }
func (f *fake) Items() int64          { return f.items }
func (f *fake) Size() int64           { return f.items }
func (f *fake) Slots() int            { return f.slots }
func (f *fake) Classes() uint32 {
	return 1<<(value.ClassNumber>>3) | 1<<(value.ClassString>>3)
}
func (f *fake) MayHoldForeign() bool           { return f.foreign }
func (f *fake) MayHoldInColumn(id uint64) bool { return f.marks[id] }
func (f *fake) InOrder(p access.Path) bool     { return !f.MayHoldElements(p) }
func (f *fake) MayHoldGraphForm() bool         { return f.graph }
func (f *fake) OwnInOrder(p, _ access.Path) bool {
	return f.complete[strings.Join(p.Segs, ".")]
}
func (f *fake) KeysMayBeForeign() bool { return f.foreign }
func (f *fake) MayHoldElements(p access.Path) bool {
	return f.elements[strings.Join(p.Segs, ".")]
}
func (f *fake) Coverable() bool                 { return !f.ttl }
func (f *fake) InOneClass(p access.Path) bool   { return f.complete[strings.Join(p.Segs, ".")] }
func (f *fake) EveryItemHas(p access.Path) bool { return f.complete[strings.Join(p.Segs, ".")] }
func (f *fake) TellsCount(p access.Path) bool   { return !f.untold }
func (f *fake) OnlyTexts(p access.Path) bool    { return f.texts }
func (f *fake) IDsInOneClass() bool             { return !f.mixedIDs }
func (f *fake) PartitionItems() int64           { return f.inKey }
func (f *fake) SlotItems() int64                { return f.inSlot }
func (f *fake) Within(Scope) Stats              { return f }
func (f *fake) NamesEveryItem(p access.Path) bool {
	return isID(p.Segs) || f.EveryItemHas(p) || f.named[strings.Join(p.Segs, ".")]
}

func (f *fake) LargestStretch() int64 {
	if f.stretch > 0 {
		return f.stretch
	}
	return f.items
}

func (f *fake) CountShare(p *access.Pred, entries int) float64 {
	f.ask("share", p, entries)
	s, ok := f.share[strings.Join(p.Path.Segs, ".")]
	if !ok {
		s = 0.01
	}
	if s*float64(f.items)/float64(f.slots) >= float64(entries) {
		return 1
	}
	return s
}

func (f *fake) CountRows(p *access.Pred, entries int) (rows float64, more bool) {
	f.explained = append(f.explained, strconv.Itoa(entries)+" "+whatOf(p))
	s, ok := f.share[strings.Join(p.Path.Segs, ".")]
	if !ok {
		s = 0.01
	}
	if most := float64(entries * f.slots); s*float64(f.items) >= most {
		return most, true
	}
	return s * float64(f.items), false
}

func (f *fake) CountPlaces(p *access.Pred, limit int) int {
	f.ask("places", p, limit)
	return min(limit, f.entries)
}

func (f *fake) CountInSlot(p *access.Pred, limit int) int {
	f.ask("in slot", p, limit)
	return min(limit, f.entries)
}

func (f *fake) CountKeyed(ks []access.Key, limit int64) int64 { return min(limit+1, int64(f.entries)) }

func (f *fake) CountNamed(a *access.Plan, limit int) bool { return f.entries <= limit }
func (f *fake) CountTexts(a *access.Plan, limit int) bool { return f.texts && f.entries <= limit }

func (f *fake) ask(what string, p *access.Pred, limit int) {
	text := "all"
	if limit < lastCount {
		text = strconv.Itoa(limit)
	}
	f.asked = append(f.asked, what+" "+text+" "+whatOf(p))
}

// parse reads a predicate of the test files: (and P..), (or P..), (eq path json..), (range path lo hi), (prefix path
// text), (exists path), (near path), all, none. A bound is 5, =5 or -; a path with [] at its end counts elements;
// (foreign P) and (any P) set the flags.
func parse(t *testing.T, pol *index.Policy, s string) *access.Pred {
	toks := strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(s))
	var read func() *access.Pred
	next := func() string {
		if len(toks) == 0 {
			t.Fatalf("%s ends early", s)
		}
		tok := toks[0]
		toks = toks[1:]
		return tok
	}
	path := func() access.Path {
		name := next()
		p := access.NewPath(strings.Split(strings.TrimSuffix(name, "[]"), ".")...)
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
	bound := func(text string) *access.Bound {
		if text == "-" {
			return nil
		}
		return &access.Bound{Value: val(strings.TrimPrefix(text, "=")), Inclusive: text[0] == '='}
	}
	read = func() *access.Pred {
		switch tok := next(); tok {
		case "all":
			return access.All()
		case "none":
			return access.None()
		case "(":
		default:
			t.Fatalf("%s: %s", s, tok)
		}
		op := next()
		var p *access.Pred
		switch op {
		case "and", "or":
			var kids []*access.Pred
			for toks[0] != ")" {
				kids = append(kids, read())
			}
			if p = access.And(kids...); op == "or" {
				p = access.Or(kids...)
			}
		case "eq":
			at := path()
			var vs []value.Value
			for toks[0] != ")" {
				vs = append(vs, val(next()))
			}
			p = access.In(at, vs...)
		case "range":
			at := path()
			lo, hi := bound(next()), bound(next())
			p = access.Range(at, lo, hi)
		case "prefix":
			at := path()
			p = access.Prefix(at, next())
		case "exists":
			p = access.Exists(path())
		case "near":
			p = access.Spatial(path(), region(1))
		case "foreign":
			p = access.WithForeign(read())
		case "any":
			p = read()
			p.Any = true
		default:
			t.Fatalf("%s: %s", s, op)
		}
		next()
		return p
	}
	return access.Resolve(read(), pol)
}

// region returns a circle around a place, with a radius in metres.
func region(dist float64) *geo.Region {
	at, _ := doc.ValueFromJSON([]byte(`{"type":"Point","coordinates":[7,46]}`))
	g, reason := geo.Parse(at)
	if g == nil {
		panic(reason)
	}
	return geo.Near(g, dist)
}

// policies are the indexing policies that test files name.
var policies = map[string]string{"": "", "none": `{"indexingMode":"none"}`,
	"b": `{"includedPaths":[{"path":"/b/?"}],"excludedPaths":[{"path":"/*"}]}`,
	"composite": `{"includedPaths":[{"path":"/*"}],"compositeIndexes":[
		[{"path":"/a"},{"path":"/b","order":"descending"}],
		[{"path":"/pk"},{"path":"/a"},{"path":"/t"}],
		[{"path":"/pk"},{"path":"/b"}],
		[{"path":"/x"},{"path":"/y"},{"path":"/z"}]]}`,
	"spatial": `{"includedPaths":[{"path":"/*"}],"spatialIndexes":[{"path":"/loc/*","types":["Point"]}]}`}

// marks are sets of a column: lossy:0:1 is the second column of the first composite index.
func (f *fake) mark(t *testing.T, s string) {
	kind, at, _ := strings.Cut(s, ":")
	i, n, _ := strings.Cut(at, ":")
	ix, _ := strconv.Atoi(i)
	no, _ := strconv.Atoi(n)
	col := &f.pol.Composites()[ix].Columns[no]
	id, ok := map[string]uint64{"lossy": col.Lossy, "array": col.Array, "foreign": col.Foreign,
		"mixed": col.Mixed}[kind]
	if !ok {
		t.Fatalf("no set %s", kind)
	}
	f.marks[id] = true
}

// setUp reads the arguments of a test case: the statistics, and the query.
func setUp(t *testing.T, d *datadriven.TestData) (*fake, *Request) {
	f := &fake{ready: true, elements: map[string]bool{}, complete: map[string]bool{}, named: map[string]bool{},
		share: map[string]float64{}, keys: [][]string{{"pk"}}, marks: map[uint64]bool{}, items: 10000, inKey: 1000,
		inSlot: 5000, slots: 4, entries: 50}
	r := &Request{WholeSlots: true}
	number := func(vals []string) int64 {
		n, err := strconv.ParseInt(vals[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	policy, marks := "", []string(nil)
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "policy":
			policy = a.Vals[0]
		case "marks":
			marks = a.Vals
		case "elements":
			for _, v := range a.Vals {
				f.elements[v] = true
			}
		case "complete":
			for _, v := range a.Vals {
				f.complete[v] = true
			}
		case "named":
			for _, v := range a.Vals {
				f.named[v] = true
			}
		case "share":
			for _, v := range a.Vals {
				name, n, _ := strings.Cut(v, ":")
				f.share[strings.TrimSuffix(name, "composite")], _ = strconv.ParseFloat(n, 64)
			}
		case "keys":
			f.keys = nil
			for _, v := range a.Vals {
				f.keys = append(f.keys, strings.Split(v, "."))
			}
		case "order":
			for _, v := range a.Vals {
				name, desc := strings.CutPrefix(v, "-")
				p := access.NewPath(strings.Split(strings.TrimSuffix(name, "[]"), ".")...)
				p.Elements = strings.HasSuffix(name, "[]")
				r.OrderBy, r.Desc = append(r.OrderBy, p), append(r.Desc, desc)
			}
		case "needs":
			for _, v := range a.Vals {
				r.Needs = append(r.Needs, access.NewPath(strings.Split(v, ".")...))
			}
		case "pk":
			for _, v := range a.Vals {
				r.PK = append(r.PK, value.StringOf(v))
			}
		case "at":
			at, sig, _ := strings.Cut(a.Vals[0], ":")
			r.From.At = map[string]Position{"item": AtItem, "entry": AtEntry, "keys": AtKeys, "creation": AtCreation,
				"rest": AtRest}[at]
			r.From.Texts, r.From.Dist = true, -1
			n, _ := strconv.ParseUint(sig, 10, 32)
			r.From.Signature = uint32(n)
		case "near":
			r.Near = &Near{Path: access.NewPath("loc"), Within: region, First: 100, Last: 2e7}
			r.OrderBy, r.Desc, r.Computed = []access.Path{{}}, []bool{false}, true
		case "collation":
			r.Collation = map[string]access.Collation{"json": access.JSONOrder, "bson": access.BSONOrder}[a.Vals[0]]
		case "shown":
			r.Shown = map[string]Shown{"partition": CreationByPartition, "creation": Creation, "oldest": Oldest,
				"newest": Newest}[a.Vals[0]]
		case "want":
			r.Want = map[string]Want{"values": WantValues, "ends": WantEnds, "tally": WantTally}[a.Vals[0]]
		case "items":
			f.items = number(a.Vals)
		case "inkey":
			f.inKey = number(a.Vals)
		case "inslot":
			f.inSlot = number(a.Vals)
		case "slots":
			f.slots = int(number(a.Vals))
		case "entries":
			f.entries = int(number(a.Vals))
		case "stretch":
			f.stretch = number(a.Vals)
		case "passed":
			f.passed = number(a.Vals)
		case "hits":
			f.hits = number(a.Vals)
		case "limit":
			r.Limit = int(number(a.Vals))
		case "page":
			r.Page = int(number(a.Vals))
		default:
			flag := map[string]*bool{"foreign": &f.foreign, "graph": &f.graph, "ttl": &f.ttl, "texts": &f.texts,
				"untold": &f.untold, "mixedids": &f.mixedIDs, "byid": &r.ByID, "whole": &r.Whole,
				"repeat":     &r.Repeat,
				"unnumbered": &f.unnumbered, "filtered": &r.Filtered, "own": &r.Own, "cut": &r.From.Cut,
				"former": &r.From.Former}[a.Key]
			switch {
			case a.Key == "rebuilding":
				f.ready = false
			case flag == nil:
				t.Fatalf("%s: unknown argument %s", d.Pos, a.Key)
			default:
				*flag = true
			}
		}
	}
	var err error
	if f.pol, err = index.Compile([]byte(policies[policy]), 1); err != nil {
		t.Fatal(err)
	}
	r.HasPK = len(r.PK) == len(f.keys)
	for _, m := range marks {
		f.mark(t, m)
	}
	r.Pred = parse(t, f.pol, d.Input)
	return f, r
}

// shown returns a value as test files show it.
func shown(v value.Value) string { return string(doc.AppendJSON(nil, v)) }
