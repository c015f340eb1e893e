package pebblekv

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"io"
	"slices"

	"github.com/orrerydb/orrery/core/few"
)

// span is a deleted range.
type span struct {
	lo, hi []byte
	seq    uint64
}

// version is one write of a key.
type version struct {
	key, val []byte
	seq      uint64
	deleted  bool
}

// source gives versions in the order of keys, the newest of a key first. at is valid until next.
type source interface {
	at() *version
	next() bool
	io.Closer
}

type sources []source

func (s sources) Len() int { return len(s) }
func (s sources) Less(i, j int) bool {
	a, b := s[i].at(), s[j].at()
	return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq)) < 0
}
func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(x any)   { *s = append(*s, x.(source)) }
func (s *sources) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// memory is a source of versions in memory.
type memory struct{ all []version }

func (m *memory) at() *version { return &m.all[0] }
func (m *memory) next() bool   { m.all = m.all[1:]; return len(m.all) > 0 }
func (m *memory) Close() error { return nil }

// merger visits the newest version of every key.
type merger struct {
	s     *Salvage
	open  sources
	later []tablePart // by first key; parts that aren't open yet
	drops []span      // by lower bound; those that don't begin before the present key
	over  []span      // deleted ranges that may contain the present key
}

func newMerger(s *Salvage) *merger {
	m := &merger{s: s, later: s.parts, drops: s.drops}
	few.Sort(m.later, func(a, b tablePart) int { return bytes.Compare(a.first, b.first) })
	few.Sort(m.drops, func(a, b span) int { return bytes.Compare(a.lo, b.lo) })
	if len(s.log.all) > 0 {
		m.open = sources{&s.log}
	}
	return m
}

// each visits the newest version of every key. It first opens all parts that begin at or before the first key of the
// open sources. Then that is the next key.
func (m *merger) each(visit func(key, val []byte) error) error {
	var last []byte
	for n := 0; ; n++ {
		if n%1024 == 0 && m.s.ctx.Err() != nil {
			return m.s.ctx.Err()
		}
		for len(m.later) > 0 && (len(m.open) == 0 || bytes.Compare(m.later[0].first, m.open[0].at().key) <= 0) {
			if r := m.s.run(m.later[0]); r != nil {
				heap.Push(&m.open, r)
			}
			m.later = m.later[1:]
		}
		if len(m.open) == 0 {
			return nil
		}
		v := m.open[0].at()
		if last == nil || !bytes.Equal(v.key, last) {
			last = append(last[:0], v.key...)
			if !v.deleted && !m.dropped(v) {
				if err := visit(v.key, v.val); err != nil {
					return err
				}
			}
		}
		if err := m.next(); err != nil {
			return err
		}
	}
}

// next advances the first source, and closes it at its end.
func (m *merger) next() error {
	if m.open[0].next() {
		heap.Fix(&m.open, 0)
		return nil
	}
	return heap.Pop(&m.open).(source).Close()
}

// dropped reports whether a version is in a range that was deleted after it. Its calls must have keys in order.
func (m *merger) dropped(v *version) bool {
	for len(m.drops) > 0 && bytes.Compare(m.drops[0].lo, v.key) <= 0 {
		m.over = append(m.over, m.drops[0])
		m.drops = m.drops[1:]
	}
	m.over = slices.DeleteFunc(m.over, func(d span) bool { return bytes.Compare(d.hi, v.key) <= 0 })
	return slices.ContainsFunc(m.over, func(d span) bool { return d.seq > v.seq })
}

// close closes the open sources.
func (m *merger) close() (err error) {
	for _, s := range m.open {
		err = errors.Join(err, s.Close())
	}
	return err
}
