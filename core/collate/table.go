package collate

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"io"
	"slices"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// data.bin has the weights of all characters, what the locales change, and the options of each locale. gen/Dump.java
// makes it from the tables of ICU. It is compressed with DEFLATE, and a list of varints:
//
//	the greatest primaries of white space and of punctuation
//	the number of different (secondary, case, tertiary, quaternary), and those
//	the number of tables, and those: the first is the root, the others have what a locale changes. A table has its
//	number of entries, and four columns, each behind its size in bytes:
//	    for each entry the number of its characters, the first one as a difference to that of the entry before,
//	    and the others
//	    for each entry the number of its elements
//	    for each element its primary, as a difference to that of the element before
//	    for each element its other weights
//	the number of locales, and those: name, table, whether it is one for searches, flags, strength, and how it
//	reorders scripts. The second table is below all those for searches.
//
// An entry of several characters is a contraction: they sort as one letter. The characters are in the normal form D.
//
//go:embed data.bin
var compressed []byte

// tables are the decoded contents of data.bin. Decoding takes some 10 ms and 3 MB, at the first use.
type tables struct {
	tops    [2]uint32 // the greatest primaries of white space, and of punctuation
	root    *table
	locales map[string]*locale
}

var load = sync.OnceValue(decode)

// table has the elements of characters and of contractions.
type table struct {
	pages  map[rune]*[256]span // by the upper bits of the character
	ces    []element
	starts map[rune][]contraction // by the first character, the longest first
	entry  []byte                 // its encoded form, until it is used
	shared []element
}

// span is a part of the elements: the number of them in the lowest 5 bits, and above it 1 + the first. 0: no entry.
type span uint32

type contraction struct {
	rest []rune
	seq  span
}

// locale is the order of a language.
type locale struct {
	defaults Options
	layers   []*table // what it changes, ..., the root
	lead     *[256]byte
	high     uint32   // primaries from here on aren't reordered
	ranges   []uint32 // of lead bytes that are split: the upper 16 bits are a limit, the lower ones what is added
	once     sync.Once
}

// reader reads varints. The data is trusted: it is part of the program, and a test reads all of it.
type reader struct{ b []byte }

func (r *reader) num() int {
	n, size := binary.Uvarint(r.b)
	r.b = r.b[size:]
	return int(n)
}

func (r *reader) signed() int64 {
	n := uint64(r.num())
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) take(n int) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func decode() *tables {
	b, err := io.ReadAll(flate.NewReader(bytes.NewReader(compressed)))
	if err != nil {
		panic("collate: " + err.Error())
	}
	r, t := &reader{b}, &tables{locales: map[string]*locale{}}
	t.tops = [2]uint32{uint32(r.num()), uint32(r.num())}
	weights := make([]element, r.num())
	for i := range weights {
		w := r.num()
		weights[i] = element{s: uint16(w >> 16), t: uint16(w)}
	}
	list := make([]*table, r.num())
	for i := range list {
		begin := r.b
		r.num()
		for range 4 {
			r.take(r.num())
		}
		list[i] = &table{entry: begin[:len(begin)-len(r.b)], shared: weights}
	}
	t.root = list[0]
	t.root.expand()
	for range r.num() {
		l := r.locale(list)
		t.locales[l.defaults.Locale] = l
	}
	return t
}

func (r *reader) locale(list []*table) *locale {
	l := &locale{}
	l.defaults.Locale = string(r.take(r.num()))
	if n := r.num(); n > 0 {
		l.layers = append(l.layers, list[n])
	}
	if r.num() == 1 {
		l.layers = append(l.layers, list[1])
	}
	l.layers = append(l.layers, list[0])
	flags := r.num()
	l.defaults.CaseLevel = flags&1 != 0
	if flags&2 != 0 {
		l.defaults.CaseFirst = "upper"
	} else if flags&4 != 0 {
		l.defaults.CaseFirst = "lower"
	}
	l.defaults.Numeric, l.defaults.Shifted = flags&8 != 0, flags&16 != 0
	l.defaults.Normalization, l.defaults.Backwards = flags&32 != 0, flags&64 != 0
	l.defaults.Strength = r.num()
	if r.num() == 1 {
		l.high, l.lead = uint32(r.num()), new([256]byte)
		for i := range l.lead {
			l.lead[i] = byte(r.num())
		}
		l.ranges = make([]uint32, r.num())
		for i := range l.ranges {
			l.ranges[i] = uint32(r.num())
		}
	}
	return l
}

// expand decodes a locale's tables. Locales share tables.
func (l *locale) expand() {
	expanding.Lock()
	defer expanding.Unlock()
	for _, t := range l.layers {
		t.expand()
	}
}

var expanding sync.Mutex

func (t *table) expand() {
	if t.entry == nil {
		return
	}
	r := &reader{t.entry}
	n := r.num()
	var columns [4]reader
	for i := range columns {
		columns[i].b = r.take(r.num())
	}
	t.pages, t.starts = map[rune]*[256]span{}, map[rune][]contraction{}
	first, p := int64(0), int64(0)
	for range n {
		size := columns[0].num()
		first += columns[0].signed()
		rest := make([]rune, size-1)
		for i := range rest {
			rest[i] = rune(columns[0].num())
		}
		begin, count := len(t.ces), columns[1].num()
		for range count {
			p += columns[2].signed()
			e := t.shared[columns[3].num()]
			e.p = uint32(p)
			t.ces = append(t.ces, e)
		}
		at, c := span(begin+1)<<5|span(count), rune(first)
		if size > 1 {
			t.starts[c] = append(t.starts[c], contraction{rest, at})
			continue
		}
		page := t.pages[c>>8]
		if page == nil {
			page = new([256]span)
			t.pages[c>>8] = page
		}
		page[c&0xff] = at
	}
	for _, cs := range t.starts {
		slices.SortStableFunc(cs, func(a, b contraction) int { return len(b.rest) - len(a.rest) })
	}
	t.entry, t.shared = nil, nil
}

func (t *table) of(s span) []element {
	begin := s>>5 - 1
	return t.ces[begin : begin+s&31]
}

func (t *table) single(r rune) span {
	if page := t.pages[r>>8]; page != nil {
		return page[r&0xff]
	}
	return 0
}

// exact returns the span of a string of characters.
func (t *table) exact(first rune, rest []rune) span {
	for _, c := range t.starts[first] {
		if slices.Equal(c.rest, rest) {
			return c.seq
		}
	}
	return 0
}

// prefix returns the longest contraction that begins at i.
func (t *table) prefix(runes []rune, i int) (span, int) {
	for _, c := range t.starts[runes[i]] {
		if n := len(c.rest); n <= len(runes)-i-1 && slices.Equal(c.rest, runes[i+1:i+1+n]) {
			return c.seq, n + 1
		}
	}
	return 0, 0
}

// longest returns the elements of the longest entry that begins at i, and its number of characters; 0 if no table has
// the character. An accent that doesn't follow directly, but isn't blocked by another accent of its kind, is found too,
// and moved.
//
// Example: in Danish a and the ring above are one letter. In "a, dot below, ring above" the ring belongs to the a.
func (l *locale) longest(runes []rune, i int) (seq []element, n int) {
	starts := false
	for _, t := range l.layers {
		if s := t.single(runes[i]); s != 0 && n == 0 {
			seq, n = t.of(s), 1
		}
		if len(t.starts[runes[i]]) == 0 {
			continue
		}
		starts = true
		if s, m := t.prefix(runes, i); m > max(n, 1) || m > 1 && n == 0 {
			seq, n = t.of(s), m
		}
	}
	if !starts || n == 0 {
		return seq, n
	}
	return l.accents(runes, i, seq, n)
}

// accents extends an entry by accents that follow later.
func (l *locale) accents(runes []rune, i int, seq []element, n int) ([]element, int) {
	last := byte(0) // the class of an accent that was passed over
	for j := i + n; j < len(runes); j++ {
		class := norm.NFD.PropertiesString(string(runes[j])).CCC()
		if class == 0 {
			break
		}
		if class == last {
			continue
		}
		found := l.exact(runes[i], append(slices.Clone(runes[i+1:i+n]), runes[j]))
		if found == nil {
			last = class
			continue
		}
		seq = found
		r := runes[j]
		copy(runes[i+n+1:j+1], runes[i+n:j])
		runes[i+n] = r
		n++
	}
	return seq, n
}

// exact returns the elements of a string of characters, nil if it has no entry of its own.
func (l *locale) exact(first rune, rest []rune) []element {
	for _, t := range l.layers {
		if s := t.exact(first, rest); s != 0 {
			return t.of(s)
		}
	}
	return nil
}

// reorder returns a primary in the locale's order of scripts.
func (l *locale) reorder(p uint32) uint32 {
	if l.lead == nil || p == 0 {
		return p
	}
	if b := l.lead[p>>24]; b != 0 {
		return uint32(b)<<24 | p&0xffffff
	}
	if p >= l.high {
		return p
	}
	q := p | 0xffff
	for _, r := range l.ranges {
		if q < r {
			return p + r<<24
		}
	}
	return p
}
