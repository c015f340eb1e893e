package agg

import (
	"slices"
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// accumulation is one field of a $group: the expression that is computed for each document, and the accumulator.
type accumulation struct {
	name string
	x    expr.Expr
	mk   func() expr.Accumulator
}

func compileAccumulation(name string, spec value.Value, s *expr.Scope) (accumulation, error) {
	a := accumulation{name: name}
	it := spec.Iter()
	if spec.Kind() != value.Object || !it.Next() {
		return a, merr.New(40234, "The field '%s' must be an accumulator object", name)
	}
	op, arg := string(it.Key()), it.Value()
	if it.Next() {
		return a, merr.New(40238, "The field '%s' must specify one accumulator", name)
	}
	if arg.Kind() == value.Array {
		return a, merr.New(40237, "The %s accumulator is a unary operator", op)
	}
	return compileAccumulator(a, op, arg, s)
}

// compileAccumulator compiles the accumulator op of an argument, which in a window may be an array.
func compileAccumulator(a accumulation, op string, arg value.Value, s *expr.Scope) (accumulation, error) {
	var err error
	switch op {
	case "$count":
		if arg.Kind() != value.Object || arg.Len() != 0 {
			return a, merr.New(merr.TypeMismatch, "$count takes no arguments, i.e. $count:{}")
		}
		a.x, a.mk = func(*expr.Env) (value.Value, error) { return value.Int32Of(1), nil }, expr.Accumulators["$sum"]
		return a, nil
	case "$firstN", "$lastN", "$maxN", "$minN":
		return compileN(a, op, arg, s)
	case "$top", "$bottom", "$topN", "$bottomN":
		return compileTop(a, op, arg, s)
	case "$accumulator":
		return compileScripted(a, arg, s)
	case "$median", "$percentile":
		q, err := expr.CompileQuantile(op, arg, s, 7429703)
		if err != nil {
			return a, err
		}
		a.mk = q.New
		a.x, err = expr.Compile(q.Input, s)
		return a, err
	}
	if a.mk = expr.Accumulators[op]; a.mk == nil {
		return a, merr.New(15952, "unknown group operator '%s'", op)
	}
	a.x, err = expr.Compile(arg, s)
	return a, err
}

func compileN(a accumulation, op string, arg value.Value, s *expr.Scope) (accumulation, error) {
	if arg.Kind() != value.Object || !arg.Get("n").IsDefined() || !arg.Get("input").IsDefined() {
		return a, merr.New(5787900, "specification for %s must be an object with 'n' and 'input'", op)
	}
	n, err := constantN(arg.Get("n"), s)
	if err != nil {
		return a, err
	}
	a.mk = func() expr.Accumulator { return expr.NewN(op, n) }
	a.x, err = expr.Compile(arg.Get("input"), s)
	return a, err
}

func constantN(v value.Value, s *expr.Scope) (int, error) {
	x, err := expr.Compile(v, s)
	if err != nil {
		return 0, err
	}
	if v, err = x(&expr.Env{}); err != nil {
		return 0, err
	}
	return expr.PositiveN(v)
}

// compileTop compiles $top, $topN, $bottom and $bottomN. Their accumulator gets a pair for each document: its sort keys
// and its output.
func compileTop(a accumulation, op string, arg value.Value, s *expr.Scope) (accumulation, error) {
	if arg.Kind() != value.Object || !arg.Get("sortBy").IsDefined() || !arg.Get("output").IsDefined() {
		return a, merr.New(5788001, "%s needs an object with 'sortBy' and 'output'", op)
	}
	o, err := order.Compile(arg.Get("sortBy"))
	if err != nil {
		return a, err
	}
	n := 1
	if strings.HasSuffix(op, "N") {
		if n, err = constantN(arg.Get("n"), s); err != nil {
			return a, err
		}
	}
	output, err := expr.Compile(arg.Get("output"), s)
	if err != nil {
		return a, err
	}
	root, err := expr.Compile(value.StringOf("$$ROOT"), nil)
	if err != nil {
		return a, err
	}
	a.mk = func() expr.Accumulator {
		return &topAcc{o: o, n: n, one: !strings.HasSuffix(op, "N"), bottom: strings.HasPrefix(op, "$bottom")}
	}
	a.x = func(e *expr.Env) (value.Value, error) {
		v, err := output(e)
		if err != nil {
			return v, err
		}
		doc, err := root(e)
		if err != nil {
			return doc, err
		}
		return value.MakeArray(append(o.Keys(doc), v)), nil
	}
	return a, nil
}

// Collate implements expr.Collated.
func (t *topAcc) Collate(c *collate.Collation) { t.o = slices.Clone(t.o).With(c) }

type topAcc struct {
	o           order.Order
	n           int
	one, bottom bool
	rows        [][]value.Value
	size        int // of rows before they are trimmed; never less than their size
}

// Size implements expr.Accumulator.
func (t *topAcc) Size() int { return 64 + t.size }

func (t *topAcc) Add(v value.Value) error {
	t.rows = append(t.rows, value.Elements(v.Clone()))
	t.size += rowSize(t.rows[len(t.rows)-1])
	if len(t.rows) > 2*t.n+64 {
		t.trim()
	}
	return nil
}

func (t *topAcc) trim() {
	sort.SliceStable(t.rows, func(i, j int) bool { return t.o.Compare(t.rows[i], t.rows[j]) < 0 })
	if len(t.rows) <= t.n {
		return
	}
	if t.bottom {
		t.rows = append([][]value.Value(nil), t.rows[len(t.rows)-t.n:]...)
	} else {
		clear(t.rows[t.n:])
		t.rows = t.rows[:t.n]
	}
	t.size = 0
	for _, r := range t.rows {
		t.size += rowSize(r)
	}
}

func rowSize(r []value.Value) int {
	n := 24
	for i := range r {
		n += 48 + len(r[i].Bytes())
	}
	return n
}

// State implements expr.Accumulator. It returns the rows that can still be part of the result.
func (t *topAcc) State() value.Value {
	t.trim()
	rows := make([]value.Value, len(t.rows))
	for i, r := range t.rows {
		rows[i] = value.MakeArray(r)
	}
	return value.MakeArray(rows)
}

// Join implements expr.Accumulator.
func (t *topAcc) Join(state value.Value) error {
	for it := state.Iter(); it.Next(); {
		if err := t.Add(it.Value()); err != nil {
			return err
		}
	}
	return nil
}

// Result implements expr.Accumulator.
func (t *topAcc) Result() value.Value {
	t.trim()
	var out []value.Value
	for _, r := range t.rows {
		out = append(out, r[len(r)-1])
	}
	if !t.one {
		return value.MakeArray(out)
	}
	if len(out) == 0 {
		return value.NullValue()
	}
	return out[0]
}

// groupState is one group.
type groupState struct {
	key    value.Value
	accs   []expr.Accumulator // nil: they are in states
	states []value.Value      // stored states of accs
	size   int                // of accs
}

// grouper computes groups. It returns them in the order of their first documents, or in another order when they don't
// fit into memory (groupspill.go).
type grouper struct {
	coll   *collate.Collation
	id     expr.Expr
	accs   []accumulation
	all    *spill.Groups[groupState]
	mem    *hold
	joined *budget.Account // of the group that is being merged from files
	size   int             // of the same
}

// newGrouper returns an empty grouper.
func newGrouper(x *Exec, id expr.Expr, accs []accumulation, h *hold) *grouper {
	g := &grouper{coll: x.Env.Run.Collation(), id: id, accs: accs, mem: h, joined: x.Env.Run.Open("group")}
	g.all = spill.NewGroups(h.space, h.mem, g.keyed())
	h.spills(g.spill)
	h.closes(func() {
		g.all.Close()
		g.joined.Close()
	})
	return g
}

func (g *grouper) add(e *expr.Env, d value.Value) error {
	e = e.With(d)
	key, err := g.id(e)
	if err != nil {
		return err
	}
	if !key.IsDefined() {
		key = value.NullValue()
	}
	st, err := g.state(key)
	if err != nil {
		return err
	}
	size := 0
	for i, a := range g.accs {
		v, err := a.x(e)
		if err != nil {
			return err
		}
		if err := st.accs[i].Add(v); err != nil {
			return err
		}
		size += st.accs[i].Size()
	}
	grown := size - st.size
	st.size = size
	return g.mem.add(grown)
}

func (g *grouper) state(key value.Value) (*groupState, error) {
	h := g.coll.Hash(key)
	for st := g.all.Find(h); st != nil; st = st.Next() {
		if g.coll.Compare(st.State.key, key) == 0 {
			return &st.State, nil
		}
	}
	if err := g.mem.add(len(key.Bytes()) + 192 + 16*len(g.accs)); err != nil { // this can write all groups to a file
		return nil, err
	}
	st := &g.all.Add(h).State
	st.key, st.accs = key.Clone(), g.fresh()
	return st, nil
}

// fresh returns new accumulators for a group.
func (g *grouper) fresh() []expr.Accumulator {
	accs := make([]expr.Accumulator, len(g.accs))
	for i, a := range g.accs {
		accs[i] = expr.Fresh(a.mk, g.coll)
	}
	return accs
}

// docs returns the groups as documents.
func (g *grouper) docs() (Iter, error) {
	if g.all.Written() {
		return g.merge()
	}
	return &groupsIter{g, g.all.List()}, nil
}

// doc returns the document of a group.
func (g *grouper) doc(st *groupState) (value.Value, error) {
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, "_id", st.key)
	for j, a := range g.accs {
		v, err := result(st.accs[j])
		if err != nil {
			return v, err
		}
		b = value.AppendElement(b, a.name, v)
	}
	return value.ObjectOf(bson.End(b, at)), nil
}

func group(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(15947, "a group's fields must be specified in an object")
	}
	var id expr.Expr
	var accs []accumulation
	for it := arg.Iter(); it.Next(); {
		name := string(it.Key())
		if name == "_id" {
			var err error
			if id, err = expr.Compile(it.Value(), c.o.Scope); err != nil {
				return nil, err
			}
			continue
		}
		if strings.Contains(name, ".") {
			return nil, merr.New(40235, "The field name '%s' cannot contain '.'", name)
		}
		if strings.HasPrefix(name, "$") {
			return nil, merr.New(40236, "The field name '%s' cannot be an operator name", name)
		}
		a, err := compileAccumulation(name, it.Value(), c.o.Scope)
		if err != nil {
			return nil, err
		}
		accs = append(accs, a)
	}
	if id == nil {
		return nil, merr.New(15955, "a group specification must include an _id")
	}
	return groupBy(id, accs), nil
}

func groupBy(id expr.Expr, accs []accumulation) stage {
	return func(x *Exec, src Iter) (Iter, error) {
		return lazyFrom(x, src, "$group", func(src Iter, h *hold) (Iter, error) {
			g := newGrouper(x, id, accs, h)
			for {
				d, ok, err := src.Next()
				if err != nil {
					return nil, err
				}
				if !ok {
					return g.docs()
				}
				if err := g.add(x.Env, d); err != nil {
					return nil, err
				}
			}
		}), nil
	}
}

// countOne returns the accumulation {count: {$sum: 1}}.
func countOne() accumulation {
	one := func(*expr.Env) (value.Value, error) { return value.Int32Of(1), nil }
	return accumulation{"count", one, expr.Accumulators["$sum"]}
}

func sortByCount(c *compiler, arg value.Value) (stage, error) {
	id, err := expr.Compile(arg, c.o.Scope)
	if err != nil {
		return nil, err
	}
	g := groupBy(id, []accumulation{countOne()})
	desc := order.Order{{Path: []string{"count"}, Desc: true}}
	return func(x *Exec, src Iter) (Iter, error) {
		it, err := g(x, src)
		if err != nil {
			return nil, err
		}
		return sorted(x, it, "$sortByCount", desc), nil
	}, nil
}

// bucketArgs are the checked arguments of $bucket.
type bucketArgs struct {
	by     expr.Expr
	bounds []value.Value
	def    value.Value // Undefined if there is none
	accs   []accumulation
}

// set compiles one argument.
func (a *bucketArgs) set(c *compiler, name string, v value.Value) (err error) {
	switch name {
	case "groupBy":
		if text := v.Str(); v.Kind() != value.Object && (v.Kind() != value.String || text == "" || text[0] != '$') {
			return merr.New(40202, "The $bucket 'groupBy' field must be defined as a $-prefixed path or an "+
				"expression, but found: %s.", merr.Show(v))
		}
		a.by, err = expr.Compile(v, c.o.Scope)
	case "boundaries":
		if v.Kind() != value.Array {
			return merr.New(40200, "The $bucket 'boundaries' field must be an array, but found type: %s.",
				expr.TypeName(v))
		}
		if v.Len() < 2 {
			return merr.New(40192, "The $bucket 'boundaries' field must have at least 2 values, but found %d "+
				"value(s).", v.Len())
		}
		return a.setBounds(c, v)
	case "default":
		a.def, err = fixedValue(c, v)
		if err == nil && !a.def.IsDefined() {
			err = merr.New(40195, "The $bucket 'default' field must be a constant expression, but found: %s.",
				merr.Show(v))
		}
	case "output":
		a.accs, err = c.output("$bucket", 40196, v)
	default:
		return merr.New(40197, "Unrecognized option to $bucket: %s.", name)
	}
	return err
}

// output compiles the accumulators of a stage of buckets. Code is that of another type.
func (c *compiler) output(stage string, code int32, v value.Value) (accs []accumulation, err error) {
	if v.Kind() != value.Object {
		return nil, merr.New(code, "The %s 'output' field must be an object, but found type: %s.", stage,
			expr.TypeName(v))
	}
	for it := v.Iter(); it.Next(); {
		acc, err := compileAccumulation(string(it.Key()), it.Value(), c.o.Scope)
		if err != nil {
			return nil, err
		}
		accs = append(accs, acc)
	}
	return accs, nil
}

// setBounds sets the boundaries, which are of one type and ascend.
func (a *bucketArgs) setBounds(c *compiler, v value.Value) error {
	a.bounds = nil
	for it := v.Iter(); it.Next(); {
		x, err := fixedValue(c, it.Value())
		if err != nil {
			return err
		}
		if !x.IsDefined() {
			return merr.New(40191, "The $bucket 'boundaries' field must be an array of constant values, but found "+
				"value: %s.", merr.Show(it.Value()))
		}
		n := len(a.bounds)
		if a.bounds = append(a.bounds, x); n == 0 {
			continue
		}
		last := a.bounds[n-1]
		if !value.SameBracket(last, x) {
			return merr.New(40193, "All values in the the 'boundaries' option to $bucket must have the same type. "+
				"Found conflicting types %s and %s.", expr.TypeName(last), expr.TypeName(x))
		}
		if c.o.Run.Collation().Compare(last, x) >= 0 {
			return merr.New(40194, "The 'boundaries' option to $bucket must be sorted, but elements %d and %d are not "+
				"in ascending order (%s is not less than %s).", n-1, n, merr.Show(last), merr.Show(x))
		}
	}
	return nil
}

// fixedValue returns the value of an expression that reads no field, and else mostly Undefined.
func fixedValue(c *compiler, v value.Value) (value.Value, error) {
	x, err := expr.Compile(v, c.o.Scope)
	if err != nil {
		return v, err
	}
	return x(&expr.Env{Run: c.o.Run})
}

// bucket compiles $bucket: a $group by the greatest boundary that is not above the value.
func bucket(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(40201, "Argument to $bucket stage must be an object, but found type: %s",
			expr.TypeName(arg))
	}
	a := bucketArgs{accs: []accumulation{countOne()}}
	for it := arg.Iter(); it.Next(); {
		if err := a.set(c, string(it.Key()), it.Value()); err != nil {
			return nil, err
		}
	}
	by, bounds, def, accs := a.by, a.bounds, a.def, a.accs
	if by == nil || bounds == nil {
		return nil, merr.New(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
	}
	compare := c.o.Run.Collation().Compare
	if def.IsDefined() && compare(def, bounds[0]) >= 0 && compare(def, bounds[len(bounds)-1]) < 0 {
		return nil, merr.New(40199, "The $bucket 'default' field must be less than the lowest boundary or greater "+
			"than or equal to the highest boundary.")
	}
	id := func(e *expr.Env) (value.Value, error) {
		v, err := by(e)
		if err != nil {
			return v, err
		}
		i := sort.Search(len(bounds), func(i int) bool { return e.Run.Collation().Compare(bounds[i], v) > 0 })
		if v.IsDefined() && i > 0 && i < len(bounds) {
			return bounds[i-1], nil
		}
		if !def.IsDefined() {
			return v, merr.New(40066, "$switch could not find a matching branch for an input, and no default was "+
				"specified.")
		}
		return def, nil
	}
	g := groupBy(id, accs)
	asc := order.Order{{Path: []string{"_id"}}}
	return func(x *Exec, src Iter) (Iter, error) {
		it, err := g(x, src)
		if err != nil {
			return nil, err
		}
		return sorted(x, it, "$bucket", asc), nil
	}, nil
}
