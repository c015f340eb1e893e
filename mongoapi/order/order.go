// Package order compiles sort specifications and compares documents by them.
package order

import (
	"slices"
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// Column is one path of a sort.
type Column struct {
	Path []string
	Desc bool
	// Meta names the score of a search that is the key; "": none. Score returns it.
	Meta  string
	Score func(doc value.Value) float64
	Coll  *collate.Collation // the order of strings; nil: that of their bytes
}

// Order is a compiled sort.
type Order []Column

// Compile compiles a sort document such as {a: 1, "b.c": -1}. For an empty one the Order is nil.
func Compile(v value.Value) (Order, error) {
	if !v.IsDefined() || v.Kind() == value.Null {
		return nil, nil
	}
	if v.Kind() != value.Object {
		return nil, merr.New(merr.TypeMismatch, "Expected field sort to be of type object")
	}
	var o Order
	for it := v.Iter(); it.Next(); {
		key, d := string(it.Key()), it.Value()
		if d.Kind() == value.Object {
			if d.Len() != 1 || !d.Get("$meta").IsDefined() {
				return nil, merr.New(17312, "the only expression supported by $sort right now is {$meta: ...}, got: %s",
					merr.Show(d))
			}
			if err := expr.CheckMeta(d.Get("$meta")); err != nil {
				return nil, err
			}
			o = append(o, Column{Path: []string{metaPath}, Desc: true, Meta: d.Get("$meta").Str()})
			continue
		}
		n, ok := num.ToInt64(d, false)
		if !ok || n != 1 && n != -1 {
			return nil, merr.New(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
		}
		if key == "$natural" {
			if v.Len() > 1 {
				return nil, merr.New(merr.BadValue, "Cannot include '$natural' in compound sort")
			}
			continue // the caller handles it: it is the order without a sort
		}
		segs := strings.Split(key, ".")
		for _, s := range segs {
			if s == "" {
				return nil, merr.New(15998, "FieldPath field names may not be empty strings.")
			}
			if s[0] == '$' && !expr.DBRefName(s) {
				return nil, merr.New(16410, "FieldPath field names may not start with '$'. Consider using $getField "+
					"or $setField.")
			}
		}
		o = append(o, Column{Path: segs, Desc: n < 0})
	}
	if len(o) > 32 {
		return nil, merr.New(13103, "too many compound keys")
	}
	return o, nil
}

// metaPath is a name that no field has.
const metaPath = "\x00score"

// NeedsScore reports whether the order is one of scores.
func (o Order) NeedsScore() bool {
	return slices.ContainsFunc(o, func(c Column) bool { return c.Meta != "" })
}

// Bind returns the order with the functions of e that compute scores.
func (o Order) Bind(e *expr.Env) (Order, error) {
	if !o.NeedsScore() {
		return o, nil
	}
	o = slices.Clone(o)
	for i := range o {
		if o[i].Meta == "" {
			continue
		}
		if o[i].Score = e.ScoreOf(o[i].Meta); o[i].Score == nil {
			return nil, expr.NoScore(o[i].Meta)
		}
	}
	return o, nil
}

// Key returns the value by which a document is sorted in one column. An array counts as its smallest element, or as its
// greatest if the column is descending. An empty array is below null. A missing value is null.
func Key(doc value.Value, c Column) value.Value {
	v, _ := KeyOf(doc, c)
	return v
}

// KeyOf is Key, and reports whether the path leads through an array. Only documents for which it does so can be those
// that Check refuses, so the look-up that makes the key also tells whether Check is needed.
func KeyOf(doc value.Value, c Column) (key value.Value, array bool) {
	if c.Score != nil {
		return value.DoubleOf(c.Score(doc)), false
	}
	v, path := doc, c.Path
	for len(path) > 0 && v.Kind() == value.Object {
		v, path = v.Get(path[0]), path[1:]
	}
	array = v.Kind() == value.Array
	if !array && len(path) == 0 && v.IsDefined() { // most values
		return v, false
	}
	v, found := pick(c.Coll, v, path, c.Desc)
	if !found {
		return value.NullValue(), array
	}
	return v, array
}

// pick returns the smallest or greatest value at path. found is false if there is none.
func pick(c *collate.Collation, v value.Value, path []string, desc bool) (best value.Value, found bool) {
	for len(path) > 0 && v.Kind() == value.Object {
		v, path = v.Get(path[0]), path[1:]
	}
	if v.Kind() != value.Array {
		if len(path) > 0 || !v.IsDefined() {
			return value.NullValue(), true
		}
		return v, true
	}
	i, at := 0, -1
	if len(path) > 0 {
		at = index(path[0])
	}
	take := func(x value.Value) {
		if !found || (c.Compare(x, best) < 0) != desc && c.Compare(x, best) != 0 {
			best, found = x, true
		}
	}
	for it := v.Iter(); it.Next(); i++ {
		e := it.Value()
		switch {
		case len(path) == 0:
			take(e)
		case i == at:
			if x, ok := pick(c, e, path[1:], desc); ok {
				take(x)
			}
		case e.Kind() == value.Object && at < 0:
			if x, ok := pick(c, e, path, desc); ok {
				take(x)
			}
		}
	}
	if !found && len(path) == 0 {
		return value.Undef(), true // an empty array
	}
	return best, found
}

func index(s string) int {
	n := 0
	if s == "" || len(s) > 9 {
		return -1
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// With returns the order with strings compared by c.
func (o Order) With(c *collate.Collation) Order {
	for i := range o {
		o[i].Coll = c
	}
	return o
}

// CompareKeys compares two keys of one column in ascending order.
func CompareKeys(a, b value.Value) int { return compareKeys(nil, a, b) }

// Comparer returns CompareKeys with strings compared by c.
func Comparer(c *collate.Collation) func(a, b value.Value) int {
	if c == nil {
		return CompareKeys
	}
	return func(a, b value.Value) int { return compareKeys(c, a, b) }
}

func compareKeys(c *collate.Collation, a, b value.Value) int {
	switch {
	case a.IsDefined() && b.IsDefined():
		return c.Compare(a, b)
	case !a.IsDefined() && !b.IsDefined():
		return 0
	case !a.IsDefined():
		if b.Kind() == value.MinKey {
			return 1
		}
		return -1
	}
	return -compareKeys(c, b, a)
}

// Keys returns the keys of all columns.
func (o Order) Keys(doc value.Value) []value.Value {
	ks, _ := o.keys(doc)
	return ks
}

// keys is Keys, and reports whether one of the paths leads through an array.
func (o Order) keys(doc value.Value) (ks []value.Value, array bool) {
	ks = make([]value.Value, len(o))
	for i, c := range o {
		k, through := KeyOf(doc, c)
		ks[i], array = k, array || through
	}
	return ks, array
}

// Compare compares two documents by their keys.
func (o Order) Compare(a, b []value.Value) int {
	for i, c := range o {
		if r := compareKeys(c.Coll, a[i], b[i]); r != 0 {
			if c.Desc {
				return -r
			}
			return r
		}
	}
	return 0
}

// Sorter collects documents and returns them sorted. With a limit it keeps only that many.
type Sorter struct {
	o     Order
	limit int // 0: all
	max   int // bytes; 0: no bound
	size  int
	rows  []row
	worst []value.Value // the keys of the last document of limit; nil: that isn't known yet
}

type row struct {
	keys []value.Value
	doc  value.Value
}

// NewSorter returns a Sorter that refuses to hold more than maxBytes; 0 = no limit.
func (o Order) NewSorter(limit, maxBytes int) *Sorter {
	return &Sorter{o: o, limit: limit, max: maxBytes}
}

// Add adds a copy of a document.
func (s *Sorter) Add(doc value.Value) error {
	if s.worst == nil {
		doc = doc.Clone()
	}
	keys, array := s.o.keys(doc)
	if array {
		if err := s.o.Check(doc); err != nil {
			return err
		}
	}
	if s.worst != nil {
		if s.o.Compare(keys, s.worst) >= 0 {
			return nil
		}
		doc = doc.Clone()
		keys, _ = s.o.keys(doc)
	}
	s.rows = append(s.rows, row{keys, doc})
	s.size += s.held(doc)
	if s.limit > 0 && len(s.rows) >= 2*s.limit+1000 {
		s.trim()
	}
	if s.max > 0 && s.size > s.max {
		if s.trim(); s.size > s.max {
			return merr.New(merr.MemoryLimit, "Sort exceeded memory limit of %d bytes, but did not opt in to "+
				"external sorting.", s.max)
		}
	}
	return nil
}

// held returns the memory in bytes that a document takes.
func (s *Sorter) held(doc value.Value) int { return len(doc.Bytes()) + 64 + 72*len(s.o) }

// Held returns the memory in bytes that the documents take.
func (s *Sorter) Held() int { return s.size }

func (s *Sorter) trim() {
	sort.SliceStable(s.rows, func(i, j int) bool { return s.o.Compare(s.rows[i].keys, s.rows[j].keys) < 0 })
	if s.limit > 0 && len(s.rows) > s.limit {
		clear(s.rows[s.limit:])
		s.rows = s.rows[:s.limit]
		s.size = 0
		for _, r := range s.rows {
			s.size += s.held(r.doc)
		}
	}
	if s.limit > 0 && len(s.rows) == s.limit {
		s.worst = s.rows[s.limit-1].keys
	}
}

// Docs returns the sorted documents.
func (s *Sorter) Docs() []value.Value {
	s.trim()
	out := make([]value.Value, len(s.rows))
	for i, r := range s.rows {
		out[i] = r.doc
	}
	return out
}
