package run_test

import (
	"bytes"
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
)

// memStore keeps documents in a map and evaluates look-ups by scanning all of them. It applies the predicate exactly as
// an index would (elements of arrays, stored names), so a predicate that is too narrow loses results here too. log
// records the look-ups for tests of the plans.
type memStore struct {
	mu   sync.Mutex
	mode graph.KeyMode
	key  string
	docs map[string][]byte
	log  []string
}

func newMemStore(mode graph.KeyMode, key string) *memStore {
	return &memStore{mode: mode, key: key, docs: map[string][]byte{}}
}

func docKey(pk, id value.Value) string {
	if f, ok := value.Number(pk); ok { // 5 and 5.0 are the same partition
		pk = value.DoubleOf(f)
	}
	return string(doc.AppendExtJSON(nil, pk, true)) + "|" + string(doc.AppendExtJSON(nil, id, true))
}

func (m *memStore) Key() (graph.KeyMode, string) { return m.mode, m.key }

func (m *memStore) note(s string) { m.log = append(m.log, s) }

func (m *memStore) Get(_ context.Context, pk, id value.Value) (graph.Doc, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("get " + docKey(pk, id))
	return graph.Doc{Bytes: m.docs[docKey(pk, id)], Charge: 1}, nil
}

func (m *memStore) keyOf(d []byte) value.Value {
	switch m.mode {
	case graph.KeyProperty:
		return doc.Value(d).Get(m.key)
	case graph.KeyID:
		return doc.Value(d).Get("_id")
	}
	return doc.Value(d).Get("_partitionKey")
}

type memRows struct {
	docs [][]byte
	cur  []byte
	n    uint64
	walk bool
}

func (r *memRows) Next() bool {
	if len(r.docs) == 0 {
		return false
	}
	r.cur = append(r.cur[:0], r.docs[0]...) // one buffer for all: to keep a document it must be copied
	r.docs = r.docs[1:]
	r.n++
	return true
}

func (r *memRows) Doc() []byte  { return r.cur }
func (r *memRows) Take() []byte { return bytes.Clone(r.cur) }
func (r *memRows) Made() uint64 { return r.n }
func (r *memRows) Walked() bool { return r.walk }
func (r *memRows) Err() error   { return nil }
func (r *memRows) Close() float64 {
	for i := range r.cur {
		r.cur[i] = 0xEE
	}
	return 1
}

func (m *memStore) Find(_ context.Context, f graph.Find) (graph.Rows, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	what := "find"
	if f.PK.IsDefined() {
		what += " pk=" + string(doc.AppendExtJSON(nil, f.PK, true))
	}
	what += " " + predText(f.Pred)
	if f.Limit > 0 {
		what += " limit " + strconv.Itoa(f.Limit)
	}
	if f.First != nil {
		what += " in order of " + f.First.Key + map[bool]string{true: " desc"}[f.First.Desc]
	}
	m.note(what)
	var keys []string
	for k := range m.docs {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return naturalLess(keys[i], keys[j]) })
	r := &memRows{}
	if f.First != nil { // all are sorted below
		f.Limit = 0
	}
	for _, k := range keys {
		d := m.docs[k]
		if f.PK.IsDefined() && string(doc.AppendExtJSON(nil, m.keyOf(d), true)) != string(
			doc.AppendExtJSON(nil, f.PK, true)) {
			continue
		}
		if !predHolds(f.Pred, d) || f.Limit > 0 && len(r.docs) >= f.Limit {
			continue
		}
		ok, err := f.Match == nil, error(nil)
		if !ok {
			ok, err = f.Match(d)
		}
		if err != nil {
			return nil, err
		}
		if ok && (f.First == nil || f.First.Of(d).IsDefined()) {
			r.docs = append(r.docs, d)
		}
	}
	if first := f.First; first != nil {
		slices.SortStableFunc(r.docs, func(a, b []byte) int {
			c := first.Values(first.Of(a), first.Of(b))
			if first.Desc {
				return -c
			}
			return c
		})
		r.walk = true // unless the values are of several types
		for _, d := range r.docs {
			f, _ := value.Number(first.Of(d))
			r.walk = r.walk && first.Of(d).Kind() == first.Of(r.docs[0]).Kind() && f == f
		}
	}
	return r, nil
}

// naturalLess sorts "9" before "10", so that the test graphs are in the order of their ids.
func naturalLess(a, b string) bool {
	ia, ib := strings.LastIndexByte(a, '|'), strings.LastIndexByte(b, '|')
	x, e1 := strconv.Atoi(strings.Trim(a[ia+1:], `"`))
	y, e2 := strconv.Atoi(strings.Trim(b[ib+1:], `"`))
	switch {
	case e1 == nil && e2 == nil && x != y:
		return x < y
	case (e1 == nil) != (e2 == nil):
		return e1 == nil
	}
	return a < b
}

func predText(p *access.Pred) string {
	if p == nil {
		return "all"
	}
	path := strings.Join(p.Path.Segs, "/")
	if p.Path.Elements {
		path = strings.Replace(path, p.Path.Segs[0], p.Path.Segs[0]+"[]", 1)
	}
	val := func(v value.Value) string { return string(doc.AppendExtJSON(nil, v, true)) }
	switch p.Op {
	case access.OpNone:
		return "none"
	case access.OpAnd, access.OpOr:
		var parts []string
		for _, s := range p.Kids {
			parts = append(parts, predText(s))
		}
		return map[access.Op]string{access.OpAnd: "and", access.OpOr: "or"}[p.Op] + "(" +
			strings.Join(parts, ", ") + ")"
	case access.OpIn:
		if len(p.Vals) == 1 {
			return path + "=" + val(p.Vals[0])
		}
		var vs []string
		for _, v := range p.Vals {
			vs = append(vs, val(v))
		}
		return path + " in " + strings.Join(vs, ",")
	case access.OpExists:
		return path + " exists"
	case access.OpPrefix:
		return path + "^" + val(value.StringOf(p.Str))
	case access.OpRange:
		s := path
		if p.Lo != nil {
			s += map[bool]string{true: ">=", false: ">"}[p.Lo.Inclusive] + val(p.Lo.Value)
		}
		if p.Hi != nil {
			s += map[bool]string{true: "<=", false: "<"}[p.Hi.Inclusive] + val(p.Hi.Value)
		}
		return s
	}
	return "all"
}

func predHolds(p *access.Pred, d []byte) bool {
	if p == nil {
		return true
	}
	switch p.Op {
	case access.OpNone:
		return false
	case access.OpAnd:
		for _, s := range p.Kids {
			if !predHolds(s, d) {
				return false
			}
		}
		return true
	case access.OpOr:
		for _, s := range p.Kids {
			if predHolds(s, d) {
				return true
			}
		}
		return false
	case access.OpAll:
		return true
	}
	for _, v := range reach(doc.Value(d), p.Path.Segs, p.Path.Elements) {
		if leafHolds(p, v) {
			return true
		}
	}
	return false
}

func reach(v value.Value, path []string, element bool) []value.Value {
	if len(path) == 0 {
		return []value.Value{v}
	}
	f := v.Get(path[0])
	if element {
		var out []value.Value
		for it := f.Iter(); f.Kind() == value.Array && it.Next(); {
			out = append(out, reach(it.Value(), path[1:], false)...)
		}
		if len(path) == 1 && f.IsDefined() {
			out = append(out, f)
		}
		return out
	}
	return reach(f, path[1:], false)
}

func compareSimple(a, b value.Value) (int, bool) {
	switch {
	case a.IsNumber() && b.IsNumber():
		return value.CompareNumbers(a, b), true
	case a.Kind() != b.Kind():
		return 0, false
	case a.Kind() == value.Bool:
		if a.Bool() == b.Bool() {
			return 0, true
		}
		return map[bool]int{true: 1, false: -1}[a.Bool()], true
	}
	return bytes.Compare(a.Bytes(), b.Bytes()), true
}

func leafHolds(p *access.Pred, v value.Value) bool {
	switch p.Op {
	case access.OpIn:
		for _, w := range p.Vals {
			if c, ok := compareSimple(v, w); ok && c == 0 {
				return true
			}
		}
		return false
	case access.OpExists:
		return v.IsDefined()
	case access.OpPrefix:
		return v.Kind() == value.String && strings.HasPrefix(v.Str(), p.Str)
	}
	if p.Lo != nil {
		if c, ok := compareSimple(v, p.Lo.Value); !ok || c < 0 || c == 0 && !p.Lo.Inclusive {
			return false
		}
	}
	if p.Hi != nil {
		if c, ok := compareSimple(v, p.Hi.Value); !ok || c > 0 || c == 0 && !p.Hi.Inclusive {
			return false
		}
	}
	return true
}

func (m *memStore) Create(_ context.Context, pk, id value.Value, d []byte) (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("create " + docKey(pk, id))
	if _, ok := m.docs[docKey(pk, id)]; ok {
		return 0, status.New(status.Conflict, "Resource with specified id or name already exists.")
	}
	m.docs[docKey(pk, id)] = append([]byte(nil), d...)
	return 10, nil
}

func (m *memStore) Update(_ context.Context, pk, id value.Value, f func(old []byte) ([]byte, bool, error)) (
	bool, float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("update " + docKey(pk, id))
	old, ok := m.docs[docKey(pk, id)]
	if !ok {
		return false, 1, nil
	}
	d, drop, err := f(old)
	if err != nil {
		return true, 1, err
	}
	switch {
	case drop:
		delete(m.docs, docKey(pk, id))
	case d != nil:
		m.docs[docKey(pk, id)] = append([]byte(nil), d...)
	}
	return true, 10, nil
}
