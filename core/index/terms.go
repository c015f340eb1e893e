package index

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// MaxTerms is the largest number of entries of an item that contain values. Each further path gets one "any value"
// entry, which every scan of that path reads too.
const MaxTerms = 5000

// GraphForm is the bit of Classes for graph elements in the service's stored form. They lack entries for data that no
// traversal searches: the id of a vertex property, the property as an object, and what an edge repeats of its vertices
// (EdgeCopies). If the bit is set, the index can't answer conditions on those.
const GraphForm = 1 << 30

// EdgeCopies are the fields of an edge that repeat data of its vertices.
var EdgeCopies = []string{"_sinkLabel", "_sinkPartition", "_vertexLabel"}

// maxDepth limits the recursion. Documents are limited more strictly on input.
const maxDepth = 256

// Unindexed is a bit of Terms.Classes that isn't a class: the item was written with the indexing directive Exclude, so
// the index doesn't contain it.
const Unindexed = 1 << 31

// Flags of an index entry.
const (
	FlagElement = 1 << 0 // the value is an element of an array, not the value at the path
	FlagLossy   = 1 << 1 // the encoded value is cut: values with equal encodings may differ
	// Bits 2 and 3: FormMask
	FlagMany = 1 << 4 // the item has several values at the path itself, because a field name occurs twice
	FlagSet  = 1 << 7 // always set: a stored value must not be empty, and this one is never zero
)

// Terms are the index terms of one document, sorted and without duplicates. Reset makes a Terms ready for reuse.
type Terms struct {
	buf    []byte
	fields []byte // memory for CollectChange
	names  []fieldTerms
	list   []term
	// Classes has bit c>>3 set for each class byte c of a term. Queries skip classes that a slot has never contained.
	Classes uint32
	// Elements and Lossy are Bloom sets of the path ids with an element or a lossy term. Elements also has each path
	// for which one document has several terms. Columns has the ids of columns of composite indexes, see Column.
	Elements, Lossy, Columns Bloom
}

type term struct {
	path     uint64
	off, end uint32 // path and encoded value in buf
	flag     byte
}

// begin begins a term with its path.
func (t *Terms) begin(path uint64) (off int) {
	off = len(t.buf)
	t.buf = binary.BigEndian.AppendUint64(t.buf, path)
	return off
}

// end ends the term that begins at off.
func (t *Terms) end(path uint64, off int, flag byte) {
	t.list = append(t.list, term{path, uint32(off), uint32(len(t.buf)), flag})
}

// value returns the encoded value of a term.
func (t *Terms) value(e *term) []byte { return t.buf[e.off+8 : e.end] }

// compareTerms orders terms by their bytes.
func compareTerms(s *Terms, a *term, t *Terms, b *term) int {
	switch {
	case a.path < b.path:
		return -1
	case a.path > b.path:
		return 1
	}
	return bytes.Compare(s.value(a), t.value(b))
}

// Bloom is a small set of path ids with false positives.
type Bloom [4]uint64

// FullBloom contains every id.
var FullBloom = Bloom{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// Add puts a path id into the set.
func (b *Bloom) Add(id uint64) { b[id>>6&3] |= 1 << (id & 63) }

// Has reports whether the set may contain the id.
func (b *Bloom) Has(id uint64) bool { return b[id>>6&3]&(1<<(id&63)) != 0 }

// Merge adds another set and reports whether b changed.
func (b *Bloom) Merge(o *Bloom) (changed bool) {
	for i := range b {
		n := b[i] | o[i]
		changed = changed || n != b[i]
		b[i] = n
	}
	return changed
}

// Reset empties t and keeps its memory.
func (t *Terms) Reset() {
	t.buf, t.list, t.Classes, t.Elements, t.Lossy, t.Columns = t.buf[:0], t.list[:0], 0, Bloom{}, Bloom{}, Bloom{}
}

// Len returns the number of terms.
func (t *Terms) Len() int { return len(t.list) }

// At returns term i (path id and encoded value) and its flag byte. The bytes point into t.
func (t *Terms) At(i int) (b []byte, flag byte) {
	e := t.list[i]
	return t.buf[e.off:e.end], e.flag
}

// Path calls f for the terms of a path in order, until f returns false. val is the encoded value.
func (t *Terms) Path(path uint64, f func(val []byte, flag byte) bool) {
	i := sort.Search(len(t.list), func(i int) bool { return t.list[i].path >= path })
	for ; i < len(t.list) && t.list[i].path == path; i++ {
		if e := &t.list[i]; !f(t.value(e), e.flag) {
			return
		}
	}
}

// Collect fills t with the terms of a document (its stored bytes) and its _ts.
func (p *Policy) Collect(t *Terms, doc []byte, ts int64) { p.collect(t, doc, Version{doc, ts}) }

// collect is Collect, with the fields taken from one document and everything that isn't part of a single field from
// another.
func (p *Policy) collect(t *Terms, fields []byte, whole Version) {
	t.Reset()
	if p.empty {
		return
	}
	doc, ts := whole.Doc, whole.TS
	w := walker{p: p, t: t, edge: value.ObjectOf(doc).Get("_isEdge").Bool()}
	if w.edge {
		t.Classes |= GraphForm
	}
	w.object(value.ObjectOf(fields), p.root, p.root.subtree == include, p.Seed, 0, false)
	w.emit(child(p.Seed, []byte(SystemTS)), value.IntOf(ts), false)
	for i := range p.spatial {
		w.work.Left = spatialWork
		w.spatial(&p.spatial[i], value.ObjectOf(doc), 0, p.spatial[i].seed, 0)
	}
	if p.words != nil {
		w.words(value.ObjectOf(doc))
	}
	if len(p.texts) > 0 {
		w.texts(value.ObjectOf(fields))
	}
	for _, e := range p.exact {
		if !lookup(value.ObjectOf(doc), e.segs).IsDefined() {
			w.emit(e.id, value.Undef(), false)
		}
	}
	for _, c := range p.composites {
		c.term(t, doc, ts)
	}
	for _, c := range p.tuples {
		c.tuples(t, doc)
	}
	t.sort()
}

func lookup(v value.Value, segs []string) value.Value {
	for _, s := range segs {
		v = v.Get(s)
	}
	return v
}

type walker struct {
	p     *Policy
	t     *Terms
	edge  bool            // the document is an edge
	spill map[uint64]bool // paths that already have their "any value" entry
	work  geo.Work        // the work that shapes may still cost
}

// object emits the terms of an object's fields. n is the policy's node for the object, nil if no rule lies at or below
// it.
func (w *walker) object(v value.Value, n *node, in bool, id uint64, depth int, elem bool) {
	o := w.begin(elem)
	for it := v.Iter(); it.Next(); {
		if w.edge && depth == 0 && slices.Contains(EdgeCopies, string(it.Key())) {
			continue
		}
		var kn *node
		kin := in
		if n != nil && n.kids != nil {
			if kn = n.kids[string(it.Key())]; kn != nil && kn.subtree != unset {
				kin = kn.subtree == include
			}
		}
		if !kin && kn == nil {
			continue
		}
		o.field(child(id, it.Key()))
		w.value(it.Value(), kn, kin, o.id, depth+1, elem)
	}
	o.end()
}

func (w *walker) value(v value.Value, n *node, in bool, id uint64, depth int, elem bool) {
	if depth > maxDepth {
		return
	}
	self := in
	if n != nil && n.scalar != unset {
		self = n.scalar == include
	}
	if self {
		w.emit(id, v, elem)
	}
	switch v.Kind() {
	case value.Object:
		w.object(v, n, in, id, depth, elem)
	case value.Array:
		en, ein := n, in
		if n != nil && n.kids["[]"] != nil {
			en = n.kids["[]"]
			if en.subtree != unset {
				ein = en.subtree == include
			}
		} else if n != nil && n.scalar == include && !in {
			ein = false
		}
		for it := v.Iter(); it.Next(); {
			switch e := it.Value(); {
			case (n == nil || n.kids == nil) && isGraphProperty(e):
				w.graphProperty(e, ein, id, depth+1)
			case self && e.Kind() == value.Object:
				w.t.stands(id)
				w.object(e, en, ein, id, depth+1, true)
			default:
				w.value(e, en, ein, id, depth+1, true)
			}
		}
	}
}

// isGraphProperty reports whether an array element is a vertex property in the service's stored form: an object with
// exactly the fields _value, id and optionally _meta.
func isGraphProperty(v value.Value) bool {
	if v.Kind() != value.Object {
		return false
	}
	val, id := false, false
	for it := v.Iter(); it.Next(); {
		switch string(it.Key()) {
		case "_value":
			val = true
		case "id":
			id = true
		case "_meta":
		default:
			return false
		}
	}
	return val && id
}

// graphProperty emits the terms of a vertex property's value and meta-properties. It emits no term for its id, which is
// random and never searched, nor for the whole object. This halves the entries of a vertex. GraphForm records that it
// was done.
func (w *walker) graphProperty(v value.Value, in bool, id uint64, depth int) {
	if !in {
		return
	}
	w.t.Classes |= GraphForm
	for it := v.Iter(); it.Next(); {
		if string(it.Key()) != "id" {
			w.value(it.Value(), nil, true, child(id, it.Key()), depth+1, true)
		}
	}
}

func (w *walker) emit(id uint64, v value.Value, elem bool) {
	t := w.t
	if len(t.list) >= MaxTerms {
		w.anyValue(id)
		return
	}
	off := t.begin(id)
	var lossy bool
	if w.p.former {
		t.buf, lossy = keys.AppendFormerIndex(t.buf, v)
	} else {
		t.buf, lossy = keys.AppendIndex(t.buf, v)
	}
	flag := byte(FlagSet)
	if elem {
		flag |= FlagElement
		t.Elements.Add(id)
	}
	if lossy {
		flag |= FlagLossy
		t.Lossy.Add(id)
	} else if !elem {
		flag |= formOf(v)
	}
	if k := v.Kind(); k == value.Decimal || k == value.Symbol {
		t.Classes |= Odd
	}
	t.Classes |= 1 << (t.buf[off+8] >> 3)
	t.end(id, off, flag)
}

// stands records an object in an array without an entry of its own: the array's entry represents it. No query searches
// the elements of an array for a whole object, and each such entry would be unique. A scan for objects on a path with
// elements reads the entries of arrays too (core/plan/access).
func (t *Terms) stands(id uint64) {
	t.Classes |= 1 << (value.ClassObject >> 3)
	t.Elements.Add(id)
	t.Lossy.Add(id)
}

// anyValue gives a path its "any value" entry.
func (w *walker) anyValue(id uint64) {
	if w.spill[id] {
		return
	}
	if w.spill == nil {
		w.spill = map[uint64]bool{}
	}
	w.spill[id] = true
	t := w.t
	off := t.begin(id)
	t.buf = append(t.buf, value.ClassAny)
	t.end(id, off, FlagSet|FlagElement|FlagLossy)
	t.Classes |= 1 << (value.ClassAny >> 3)
	t.Elements.Add(id)
	t.Lossy.Add(id)
}

// sort sorts the terms and merges equal ones. If a value occurs both at its path and in an array, the flag of the
// former stays.
func (t *Terms) sort() {
	slices.SortFunc(t.list, func(a, b term) int { return compareTerms(t, &a, t, &b) })
	out := t.list[:0]
	for i := range t.list {
		e := &t.list[i]
		if n := len(out); n > 0 && compareTerms(t, &out[n-1], t, e) == 0 {
			out[n-1].flag = FlagSet | out[n-1].flag&e.flag&FlagElement | (out[n-1].flag|e.flag)&FlagLossy
			continue
		}
		out = append(out, *e)
	}
	t.list = out
	t.markMany()
}

// Diff calls del for each term that only old has, and put for each term that only new has or that has another flag
// there.
func Diff(old, new *Terms, del func(term []byte), put func(term []byte, flag byte)) {
	i, j := 0, 0
	for i < len(old.list) || j < len(new.list) {
		var c int
		switch {
		case i == len(old.list):
			c = 1
		case j == len(new.list):
			c = -1
		default:
			c = compareTerms(old, &old.list[i], new, &new.list[j])
		}
		switch {
		case c < 0:
			b, _ := old.At(i)
			del(b)
			i++
		case c > 0:
			put(new.At(j))
			j++
		default:
			if b, f := new.At(j); f != old.list[i].flag {
				put(b, f)
			}
			i++
			j++
		}
	}
}

// Merge adds the terms of another policy for the same document. A term with the same flag in both keeps the flag.
func (t *Terms) Merge(o *Terms) {
	at := uint32(len(t.buf))
	t.buf = append(t.buf, o.buf...)
	a := slices.Clone(t.list)
	t.list = t.list[:0]
	for _, e := range o.list {
		e.off, e.end = e.off+at, e.end+at
		c := -1
		for len(a) > 0 {
			if c = compareTerms(t, &a[0], t, &e); c >= 0 {
				break
			}
			t.list, a = append(t.list, a[0]), a[1:]
			c = -1
		}
		if c == 0 && len(a) > 0 {
			if f := a[0].flag; f != e.flag {
				e.flag = FlagSet | f&e.flag&FlagElement | (f|e.flag)&(FlagLossy|FlagMany)
			}
			a = a[1:]
		}
		t.list = append(t.list, e)
	}
	t.list = append(t.list, a...)
	t.Classes |= o.Classes
	t.Elements.Merge(&o.Elements)
	t.Lossy.Merge(&o.Lossy)
	t.Columns.Merge(&o.Columns)
}

// Same reports whether o has the same terms with the same flags.
func (t *Terms) Same(o *Terms) bool {
	if len(t.list) != len(o.list) {
		return false
	}
	for i := range t.list {
		a, fa := t.At(i)
		b, fb := o.At(i)
		if fa != fb || !bytes.Equal(a, b) {
			return false
		}
	}
	return true
}
