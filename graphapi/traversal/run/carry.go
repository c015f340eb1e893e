package run

import (
	"encoding/binary"

	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// The encoding of a traverser: a byte of flags, its value, and what the flags say. What a traversal doesn't use isn't
// there: without a step that reads paths a traverser has no path, outside of a repeat() no loops, without withSack() no
// sack, and its bulk is mostly 1.
//
//	flags | value | bulk uvarint | sack | loops: number of them, for each its count and its name |
//	path: number of objects, each object from the first one on with its labels
//
// The last object of a path is the value of the traverser as a rule. Then flagHere is set, and the object isn't written
// twice. If only as() needs paths, objects without a label are written as null. Large objects of paths stay in memory,
// because many traversers may share one: in g.V('hub').as('h').out().order() all have the hub in their path.
const (
	flagBulk byte = 1 << iota
	flagSack
	flagLoops
	flagPath
	flagHere
)

// appendTrav appends the encoding of a traverser.
func (c *carrier) appendTrav(dst []byte, t *trav) []byte {
	c.els = c.els[:0]
	at := len(dst)
	dst = c.appendValue(append(dst, 0), t.v, false)
	flags := byte(0)
	if t.bulk != 1 {
		flags |= flagBulk
		dst = binary.AppendUvarint(dst, uint64(t.bulk))
	}
	if t.sack != nil {
		flags |= flagSack
		dst = c.appendValue(dst, t.sack, false)
	}
	if t.loops != nil {
		flags |= flagLoops
		dst = appendLoops(dst, t.loops)
	}
	if t.path != nil {
		flags |= flagPath
		if isElement(t.v) && t.path.v == t.v {
			flags |= flagHere
		}
		dst = c.appendPath(dst, t.path, flags&flagHere != 0)
	}
	dst[at] = flags
	return dst
}

func appendLoops(dst []byte, l *loopNode) []byte {
	n := 0
	for p := l; p != nil; p = p.prev {
		n++
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for ; l != nil; l = l.prev {
		dst = binary.AppendUvarint(dst, uint64(l.n))
		dst = append(binary.AppendUvarint(dst, uint64(len(l.name))), l.name...)
	}
	return dst
}

// appendPath appends the objects of a path. here says that the value of the last one isn't written.
func (c *carrier) appendPath(dst []byte, p *pathNode, here bool) []byte {
	nodes := p.objects()
	dst = binary.AppendUvarint(dst, uint64(len(nodes)))
	for i, n := range nodes {
		switch {
		case here && i == len(nodes)-1:
		case n.labels == nil && !c.x.whole:
			dst = append(dst, tagNil)
		default:
			dst = c.appendObject(dst, n.v)
		}
		dst = appendLabels(dst, n.labels)
	}
	return dst
}

// Objects of paths from these sizes on stay in memory: documents in bytes, collections in parts.
const (
	largeDoc  = 4 << 10
	largeList = 64
)

func (c *carrier) appendObject(dst []byte, v any) []byte {
	large := false
	switch e := v.(type) {
	case []any:
		if len(e) >= largeList {
			return c.keepAs(dst, &e[0], v)
		}
	case *gvalue.Map:
		large = e.Len() >= largeList
	case *gvalue.Set:
		large = e.Len() >= largeList
	case *gvalue.Vertex:
		n := graph.VertexOf(e)
		large = n != nil && len(n.Doc) >= largeDoc
	case *gvalue.Edge:
		n := graph.EdgeOf(e)
		large = n != nil && len(n.Doc) >= largeDoc
	}
	if large {
		return c.keep(dst, v)
	}
	return c.appendValue(dst, v, false)
}

// readTrav reads a traverser. It has no reference to b.
func (c *carrier) readTrav(b []byte) (*trav, error) {
	c.els = c.els[:0]
	r := record{c: c, b: b}
	t := r.trav()
	if r.bad || len(r.b) > 0 {
		return nil, damagedRecord()
	}
	return t, nil
}

func (r *record) trav() *trav {
	flags := r.byte()
	t := &trav{v: r.value(), bulk: 1}
	if flags&flagBulk != 0 {
		t.bulk = int64(r.uvarint())
	}
	if flags&flagSack != 0 {
		t.sack = r.value()
	}
	if flags&flagLoops != 0 {
		t.loops = r.loops(r.count())
	}
	if flags&flagPath != 0 {
		n := r.count()
		for i := range n {
			v := t.v
			if flags&flagHere == 0 || i < n-1 {
				v = r.value()
			}
			t.path = t.path.extend(v)
			t.path.labels = r.labels()
		}
	}
	return t
}

func (r *record) loops(n int) *loopNode {
	if n == 0 || r.bad {
		return nil
	}
	l := &loopNode{n: int(r.uvarint()), name: r.text()}
	l.prev = r.loops(n - 1)
	return l
}
