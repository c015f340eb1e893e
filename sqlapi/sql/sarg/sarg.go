// Package sarg translates a query's tree into a request to the indexes: a predicate that every item of the answer
// satisfies (sarg.go), and the paths that index entries must hold to answer the query without reading items
// (covered.go). It uses the tree and the values of constants. It doesn't know how a query is executed.
//
// Example:
//
//	input:  WHERE c.n >= 1 AND c.n < @max AND LENGTH(c.s) = 3     with @max = 5
//	output: range(/n, 1 <= value < 5)
//
// LENGTH gives no predicate, so that condition is left out of the AND. The predicate may therefore match too many
// items, but never too few. The executor evaluates the whole WHERE on each item that the index finds. In an OR, one
// condition without a predicate means that the whole OR has none.
package sarg

import (
	"math"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Const is a compiled expression that has the same value for all items. F is the state of one execution; it holds the
// values of the parameters.
type Const[F any] func(f F) value.Value

// Pred returns the predicate of one execution.
//
// Invariant: each item for which the expression can be true satisfies the predicate. Some values are stored as another
// type than the string or object that the language shows (dates, UUIDs, ..). access.WithForeign on the whole predicate
// covers them. The stored members of arrays and objects may differ from the shown ones, so predicates on arrays and
// objects only test for existence.
type Pred[F any] func(f F) *access.Pred

// Alias is an alias of FROM. IsRoot is true when it stands for the item itself.
type Alias struct {
	Name   string
	IsRoot bool
}

// Compiler translates expressions into predicates over the item.
type Compiler[F any] struct {
	From   *syntax.From
	Vars   []Alias // one for each source of From, in the same order
	Planar bool    // geometries lie in a plane
	// Compile compiles an expression that has the same value for all items.
	Compile func(e syntax.Expr) Const[F]
	of      map[*syntax.Source]*access.Element // the array element that a source iterates over
}

// Filter returns the predicate of WHERE, nil when no condition of it can use an index.
func (s Compiler[F]) Filter(where syntax.Expr) Pred[F] {
	s.of = map[*syntax.Source]*access.Element{}
	fn := s.truth(where)
	if fn == nil {
		return nil
	}
	return func(f F) *access.Pred { return access.WithForeign(fn(f)) }
}

// truth returns a predicate that all items satisfy for which e is true. nil: there is none.
func (s Compiler[F]) truth(e syntax.Expr) Pred[F] {
	switch e := e.(type) {
	case *syntax.Chain:
		switch e.Op {
		case "AND":
			return allOf(s.each(e.Xs, s.truth))
		case "OR":
			return anyOf(s.each(e.Xs, s.truth))
		}
	case *syntax.Unary:
		if e.Op == "NOT" {
			return s.falsity(e.X)
		}
	case *syntax.Binary:
		return s.comparison(e.Op, e.L, e.R)
	case *syntax.Between:
		if !e.Not {
			return allOf([]Pred[F]{s.comparison(">=", e.X, e.Lo), s.comparison("<=", e.X, e.Hi)})
		}
	case *syntax.In:
		return s.in(e)
	case *syntax.Like:
		return s.like(e)
	case *syntax.Call:
		return s.call(e)
	case *syntax.Prop, *syntax.Index:
		return s.equals(e, func(F) value.Value { return value.BoolOf(true) })
	case *syntax.SubqueryExpr:
		if e.Kind == "EXISTS" {
			return s.exists(e.Q)
		}
	}
	return nil
}

// falsity returns a predicate that all items satisfy for which e is false. nil: there is none.
func (s Compiler[F]) falsity(e syntax.Expr) Pred[F] {
	switch e := e.(type) {
	case *syntax.Chain:
		switch e.Op {
		case "AND":
			return anyOf(s.each(e.Xs, s.falsity))
		case "OR":
			return allOf(s.each(e.Xs, s.falsity))
		}
	case *syntax.Unary:
		if e.Op == "NOT" {
			return s.truth(e.X)
		}
	case *syntax.Binary:
		opposite := map[string]string{"=": "!=", "!=": "=", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}
		if op := opposite[e.Op]; op != "" {
			return s.comparison(op, e.L, e.R)
		}
	case *syntax.Prop, *syntax.Index:
		return s.equals(e, func(F) value.Value { return value.BoolOf(false) })
	case *syntax.Call:
		if strings.EqualFold(e.Name, "IS_DEFINED") && !e.UDF && len(e.Args) == 1 {
			if path, _, ok := s.path(e.Args[0]); ok && !path.Elements { // the elements of an array are all there
				return func(F) *access.Pred { return missing(path) }
			}
		}
	}
	return nil
}

// missing returns the predicate that there is no value at a path.
func missing(path access.Path) *access.Pred {
	if IsAlways(path) {
		return access.None()
	}
	return access.Eq(path, value.Undef())
}

func (s Compiler[F]) each(es []syntax.Expr, f func(syntax.Expr) Pred[F]) []Pred[F] {
	out := make([]Pred[F], len(es))
	for i, e := range es {
		out[i] = f(e)
	}
	return out
}

func allOf[F any](fs []Pred[F]) Pred[F] {
	known := fs[:0:0]
	for _, f := range fs {
		if f != nil {
			known = append(known, f)
		}
	}
	switch len(known) {
	case 0:
		return nil
	case 1:
		return known[0]
	}
	return func(f F) *access.Pred {
		ps := make([]*access.Pred, len(known))
		for i, k := range known {
			ps[i] = k(f)
		}
		return access.And(closeRanges(ps)...)
	}
}

// closeRanges joins a lower and an upper bound on the same path into one range. Example: c.n >= 1 AND c.n < 5 becomes
// the range [1, 5). Bounds on array elements are not joined, because two different elements may satisfy them.
func closeRanges(ps []*access.Pred) []*access.Pred {
	for i, lo := range ps {
		if lo.Op != access.OpRange || lo.Lo == nil || lo.Hi != nil || lo.Path.Elements {
			continue
		}
		for j, hi := range ps {
			if hi.Op == access.OpRange && hi.Lo == nil && hi.Hi != nil && slices.Equal(lo.Path.Segs, hi.Path.Segs) &&
				!hi.Path.Elements &&
				lo.Lo.Value.IsNumber() == hi.Hi.Value.IsNumber() {
				ps[i], ps[j] = access.Range(lo.Path, lo.Lo, hi.Hi), access.All()
				break
			}
		}
	}
	return ps
}

func anyOf[F any](fs []Pred[F]) Pred[F] {
	for _, f := range fs {
		if f == nil {
			return nil
		}
	}
	return func(f F) *access.Pred {
		ps := make([]*access.Pred, len(fs))
		for i, k := range fs {
			ps[i] = k(f)
		}
		return access.Or(ps...)
	}
}

// path resolves e to a path of stored names. element is true when the path reads array elements.
func (s Compiler[F]) path(e syntax.Expr) (p access.Path, element, ok bool) {
	steps, base := shape.SplitPath(e)
	id, isIdent := base.(*syntax.Ident)
	if !isIdent {
		return p, false, false
	}
	for i, v := range s.Vars {
		if v.Name != id.Name || v.IsRoot {
			if v.Name == id.Name {
				return shape.StoredPath(steps, false)
			}
			continue
		}
		src := &s.From.Sources[i]
		if src.Query != nil {
			return p, false, false
		}
		pre, root := shape.SplitPath(src.Path)
		if i > 0 {
			if r, isIdent := root.(*syntax.Ident); !isIdent || !s.isRoot(r.Name) {
				return p, false, false
			}
		}
		p, element, ok = shape.StoredPath(append(append([]shape.Step(nil), pre...), steps...), src.In)
		if ok && src.In {
			p.Of = s.element(src, pre, steps)
		}
		return p, element, ok
	}
	return p, false, false
}

// element returns the array element that a source iterates over. It returns nil when the path contains array positions:
// its names alone don't identify the array then.
func (s Compiler[F]) element(src *syntax.Source, pre, steps []shape.Step) *access.Element {
	if s.of == nil || len(steps) == 0 ||
		slices.ContainsFunc(append(pre[:len(pre):len(pre)], steps...), func(st shape.Step) bool { return st.Array }) {
		return nil
	}
	of := s.of[src]
	if of == nil {
		of = &access.Element{Array: len(pre)}
		s.of[src] = of
	}
	return of
}

func (s Compiler[F]) isRoot(name string) bool {
	for _, v := range s.Vars {
		if v.Name == name {
			return v.IsRoot
		}
	}
	return false
}

// constant compiles e when it has the same value for all items, else it returns nil.
func (s Compiler[F]) constant(e syntax.Expr) Const[F] {
	if !shape.IsConstant(e) {
		return nil
	}
	return s.Compile(e)
}

// comparison translates `path op constant` and `constant op path`.
func (s Compiler[F]) comparison(op string, l, r syntax.Expr) Pred[F] {
	if p := s.distance(op, l, r); p != nil {
		return p
	}
	if op == "=" {
		for _, side := range [][2]syntax.Expr{{l, r}, {r, l}} {
			if p := s.absolute(side[0], side[1]); p != nil {
				return p
			}
		}
	}
	if _, _, ok := s.path(l); !ok {
		flip := map[string]string{"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
		if op, l, r = flip[op], r, l; op == "" {
			return nil
		}
	}
	path, _, ok := s.path(l)
	if !ok {
		return nil
	}
	val := s.constant(r)
	if val == nil {
		if strings.Contains("= != < > <= >=", op) { // a comparison is only true when both sides are defined
			return exists[F](path)
		}
		return nil
	}
	switch op {
	case "=":
		return s.equals(l, val)
	case "!=":
		return exists[F](path)
	case "<", ">", "<=", ">=":
		return func(f F) *access.Pred { return rangePred(path, op, val(f)) }
	}
	return nil
}

// absolute translates `ABS(path) = constant`: the value at path is the constant or its negation.
func (s Compiler[F]) absolute(l, r syntax.Expr) Pred[F] {
	call, ok := l.(*syntax.Call)
	if !ok || call.UDF || !strings.EqualFold(call.Name, "ABS") || len(call.Args) != 1 {
		return nil
	}
	path, _, ok := s.path(call.Args[0])
	val := s.constant(r)
	if !ok || val == nil {
		return nil
	}
	return func(f F) *access.Pred {
		v := val(f)
		if n := v.Float(); v.IsNumber() && n >= 0 {
			return inPred(path, v, value.DoubleOf(-n))
		}
		return access.None()
	}
}

// exists returns the predicate that a path has a value. The id and _ts always have one.
func exists[F any](path access.Path) Pred[F] {
	if IsAlways(path) {
		return nil
	}
	return func(F) *access.Pred { return access.Exists(path) }
}

// IsAlways reports whether every item has a value at a path.
func IsAlways(p access.Path) bool {
	return len(p.Segs) == 1 && (p.Segs[0] == access.ID.Segs[0] || p.Segs[0] == access.TS.Segs[0])
}

// equals translates `path = constant`.
func (s Compiler[F]) equals(l syntax.Expr, val Const[F]) Pred[F] {
	path, _, ok := s.path(l)
	if !ok {
		return nil
	}
	return func(f F) *access.Pred { return inPred(path, val(f)) }
}

// inPred returns the predicate that the value at path is one of vs.
func inPred(path access.Path, vs ...value.Value) *access.Pred {
	out := make([]value.Value, 0, len(vs))
	for _, v := range vs {
		switch v.Kind() {
		case value.Undefined:
			continue
		case value.Array, value.Object:
			if IsAlways(path) {
				continue // text and numbers only
			}
			return access.Exists(path)
		}
		if isIdentity(path) {
			if v.Kind() != value.String {
				continue
			}
			out = append(out, core.IdentityFromText(v.Str())...)
			continue
		}
		out = append(out, v)
	}
	return access.In(path, out...)
}

func isIdentity(p access.Path) bool { return len(p.Segs) == 1 && p.Segs[0] == access.ID.Segs[0] }

// rangePred translates `path op constant` for < <= > >=. An id that isn't stored as a string is shown as text, whose
// place in the order differs from the stored value's. So a range of ids includes all that aren't strings.
func rangePred(path access.Path, op string, v value.Value) *access.Pred {
	switch k := v.Kind(); {
	case k == value.String:
	case v.IsNumber() && !isIdentity(path):
	case k == value.Bool:
		return ofType("IS_BOOL", path)
	case k == value.Null:
		return ofType("IS_NULL", path)
	default:
		return access.None()
	}
	p := atLeast(path, v)
	if p.Lo.Inclusive = len(op) == 2; op[0] == '<' {
		p.Lo, p.Hi = nil, p.Lo
	}
	if !isIdentity(path) {
		return p
	}
	under, over := atLeast(path, value.StringOf("")), atLeast(path, value.MakeArray(nil))
	under.Lo.Inclusive = false
	under.Lo, under.Hi, under.Any, over.Any = nil, under.Lo, true, true
	return access.Or(p, under, over)
}

// atLeast returns the predicate that the value at a path is of the type of v, and not less.
func atLeast(path access.Path, v value.Value) *access.Pred {
	return access.Range(path, &access.Bound{Value: v, Inclusive: true}, nil)
}

func (s Compiler[F]) in(e *syntax.In) Pred[F] {
	path, _, ok := s.path(e.X)
	if !ok {
		return nil
	}
	if e.Not {
		return exists[F](path)
	}
	vals := make([]Const[F], len(e.List))
	for i, x := range e.List {
		if vals[i] = s.constant(x); vals[i] == nil {
			return exists[F](path)
		}
	}
	return func(f F) *access.Pred {
		vs := make([]value.Value, len(vals))
		for i, fn := range vals {
			vs[i] = fn(f)
		}
		return inPred(path, vs...)
	}
}

func (s Compiler[F]) like(e *syntax.Like) Pred[F] {
	path, _, ok := s.path(e.X)
	if !ok {
		return nil
	}
	val := s.constant(e.Pattern)
	if e.Not || val == nil || isIdentity(path) {
		return exists[F](path)
	}
	escape := rune(0)
	for _, r := range e.Escape {
		escape = r
	}
	return func(f F) *access.Pred {
		v := val(f)
		if v.Kind() != value.String {
			return access.None()
		}
		if pre := funcs.CompileLike(v.Str(), escape).Prefix(); pre != "" {
			return access.Prefix(path, pre)
		}
		return access.Exists(path)
	}
}

// needsValue are the functions that can only be true when their first argument is defined.
var needsValue = map[string]bool{
	"CONTAINS": true, "ENDSWITH": true, "IS_ARRAY": true, "IS_BOOL": true, "IS_BOOLEAN": true, "IS_DATETIME": true,
	"IS_DEFINED": true, "IS_FINITE_NUMBER": true, "IS_INTEGER": true, "IS_NUMBER": true, "IS_OBJECT": true,
	"IS_PRIMITIVE": true, "IS_STRING": true, "REGEXMATCH": true, "STARTSWITH": true, "STRINGEQUALS": true,
	"ARRAY_CONTAINS": true, "ARRAY_CONTAINS_ANY": true, "ARRAY_CONTAINS_ALL": true,
}

// ofType returns the predicate that the value at a path is of a type, by the name of the function that tells it. nil:
// there is none. The values of a type are a range, from the least one on.
func ofType(name string, path access.Path) *access.Pred {
	var least value.Value
	switch name {
	case "IS_NULL":
		return inPred(path, value.NullValue())
	case "IS_BOOL", "IS_BOOLEAN":
		return inPred(path, value.BoolOf(false), value.BoolOf(true))
	case "IS_NUMBER", "IS_FINITE_NUMBER", "IS_INTEGER":
		least = value.DoubleOf(math.NaN())
	case "IS_STRING", "IS_DATETIME":
		if isIdentity(path) { // every id is shown as a string
			return nil
		}
		least = value.StringOf("")
	case "IS_ARRAY":
		if path.Elements {
			return access.Exists(path)
		}
		least = value.MakeArray(nil)
	case "IS_OBJECT":
		least = value.ObjectOf(doc.Empty())
	case "IS_PRIMITIVE":
		if isIdentity(path) {
			return nil
		}
		return access.Or(ofType("IS_NULL", path), ofType("IS_BOOL", path), ofType("IS_NUMBER", path),
			ofType("IS_STRING", path))
	default:
		return nil
	}
	if isIdentity(path) {
		return access.None()
	}
	return atLeast(path, least)
}

func (s Compiler[F]) call(e *syntax.Call) Pred[F] {
	name := strings.ToUpper(e.Name)
	if e.UDF || len(e.Args) == 0 {
		return nil
	}
	if name == "ST_WITHIN" || name == "ST_INTERSECTS" { // a geometry within another one also intersects it
		return s.near(e, func(F) (float64, bool) { return 0, true })
	}
	path, _, ok := s.path(e.Args[0])
	if !ok {
		if name == "ARRAY_CONTAINS" && len(e.Args) == 2 {
			return s.listContains(e)
		}
		return nil
	}
	if len(e.Args) == 1 {
		if p := ofType(name, path); p != nil {
			return func(F) *access.Pred { return ofType(name, path) }
		}
	}
	switch {
	case strings.HasPrefix(name, "FULLTEXTCONTAINS"):
		return s.texts(e, path)
	case !needsValue[name]:
		return nil
	case name == "ARRAY_CONTAINS":
		if val := s.constant(e.Args[1]); val != nil {
			return func(f F) *access.Pred { return contains(path, val(f)) }
		}
	case len(e.Args) == 2:
		val := s.constant(e.Args[1])
		if val == nil {
			break
		}
		switch name {
		case "STRINGEQUALS":
			return s.equals(e.Args[0], val)
		case "STARTSWITH":
			return startsWith(path, val)
		}
	}
	return exists[F](path)
}

// contains returns the predicate that an array has an element. An object is one if all of its members are those of one
// element, which may have others.
//
// Example: ARRAY_CONTAINS(c.lines, {"sku": "a", "of": {"n": 2}}, true) needs the value "a" at /lines/sku and 2 at
// /lines/of/n, in the same element of /lines.
func contains(path access.Path, v value.Value) *access.Pred {
	switch v.Kind() {
	case value.Array:
		return access.Exists(path)
	case value.Object:
		in := path.Element()
		if in.Of = nil; !path.Elements {
			in.Of = &access.Element{Array: len(path.Segs)}
		}
		if all := appendMembers(nil, in, v); len(all) > 0 {
			return access.And(all...)
		}
		return access.Exists(path)
	}
	return inPred(path.Element(), v)
}

// appendMembers appends the predicates that an object at a path has the members of another one.
func appendMembers(to []*access.Pred, path access.Path, of value.Value) []*access.Pred {
	for it := of.Iter(); it.Next(); {
		at := path
		at.Segs = append(path.Segs[:len(path.Segs):len(path.Segs)], string(it.Key()))
		switch v := it.Value(); {
		case strings.HasPrefix(string(it.Key()), "$"): // maybe a value of a type that JSON lacks, as it is shown
		case v.Kind() == value.Object:
			to = appendMembers(to, at, v)
		case v.Kind() != value.Array:
			to = append(to, inPred(at, v))
		}
	}
	return to
}

func startsWith[F any](path access.Path, val Const[F]) Pred[F] {
	if isIdentity(path) {
		return nil
	}
	return func(f F) *access.Pred {
		v := val(f)
		if v.Kind() != value.String {
			return access.None()
		}
		return access.Prefix(path, v.Str())
	}
}

// listContains translates `ARRAY_CONTAINS(constant list, path)`.
func (s Compiler[F]) listContains(e *syntax.Call) Pred[F] {
	path, _, ok := s.path(e.Args[1])
	list := s.constant(e.Args[0])
	if !ok || list == nil {
		return nil
	}
	return func(f F) *access.Pred {
		v := list(f)
		if v.Kind() != value.Array {
			return access.None()
		}
		var vs []value.Value
		for it := v.Iter(); it.Next(); {
			vs = append(vs, it.Value())
		}
		return inPred(path, vs...)
	}
}

// exists translates EXISTS with a sub-query over an array of the item: one element must satisfy its filter.
func (s Compiler[F]) exists(q *syntax.Query) Pred[F] {
	if q.From == nil || len(q.From.Sources) != 1 || q.Where == nil || shape.IsGrouped(q) {
		return nil
	}
	src := q.From.Sources[0]
	if !src.In || src.Query != nil {
		return nil
	}
	_, root := shape.SplitPath(src.Path)
	if r, ok := root.(*syntax.Ident); !ok || !s.isRoot(r.Name) || src.Alias == r.Name {
		return nil
	}
	inner := s
	inner.From, inner.Vars = &syntax.From{}, append([]Alias{{Name: src.Alias}}, s.Vars...)
	inner.From.Sources = append([]syntax.Source{src}, s.From.Sources...)
	// The array's source is the first one of the inner compiler. path() takes the base of a first source for the item
	// without a check. The test above has made sure that it is the item.
	return inner.truth(q.Where)
}
