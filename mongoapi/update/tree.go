package update

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// maxPad is the server's limit of nulls that a write beyond an array's end adds.
const maxPad = 1_500_000

// node is one value of a document that is being changed. It is opened, that is cut into its children, only when a path
// runs through it; what was never opened is written back byte by byte.
type node struct {
	key  string
	v    value.Value // the value while not open
	open bool
	arr  bool
	kids []*node
}

func newRoot(doc value.Value) *node {
	n := &node{v: doc}
	n.expand()
	return n
}

// container reports whether n is or can be opened.
func (n *node) container() bool {
	return n.open || n.v.Kind() == value.Object || n.v.Kind() == value.Array
}

func (n *node) expand() {
	if n.open {
		return
	}
	n.open, n.arr = true, n.v.Kind() == value.Array
	for it := n.v.Iter(); it.Next(); {
		n.kids = append(n.kids, &node{key: string(it.Key()), v: it.Value()})
	}
}

// value returns what n stands for now.
func (n *node) value() value.Value {
	if !n.open {
		return n.v
	}
	b := n.append(nil)
	if n.arr {
		return value.ArrayOf(b)
	}
	return value.ObjectOf(b)
}

// append appends the document or array that the open n is.
func (n *node) append(dst []byte) []byte {
	at, dst := bson.Begin(dst)
	for i, k := range n.kids {
		key := k.key
		if n.arr {
			key = strconv.Itoa(i)
		}
		if !k.open {
			if !k.v.IsDefined() {
				k.v = value.NullValue()
			}
			dst = value.AppendElement(dst, key, k.v)
			continue
		}
		t := byte(bson.TypeDocument)
		if k.arr {
			t = bson.TypeArray
		}
		dst = k.append(bson.AppendHead(dst, t, key))
	}
	return bson.End(dst, at)
}

func (n *node) set(v value.Value) { n.v, n.open, n.kids = v, false, nil }

func (n *node) child(name string) *node {
	for _, k := range n.kids {
		if k.key == name {
			return k
		}
	}
	return nil
}

// place is where a path leads: to at, or, when that is nil, to rest under parent.
type place struct {
	parent *node
	at     *node
	index  int // of at within parent
	rest   []string
	block  *node // the scalar, or the array under a name, that the path can't pass
	bad    string
}

// find follows a path as far as it goes.
func (n *node) find(path []string) place {
	cur := n
	for i, s := range path {
		if !cur.container() {
			return place{block: cur, bad: s, rest: path[i:]}
		}
		cur.expand()
		var next *node
		at := -1
		if cur.arr {
			at = arrayIndex(s)
			if at < 0 {
				return place{block: cur, bad: s, rest: path[i:]}
			}
			if at < len(cur.kids) {
				next = cur.kids[at]
			}
		} else {
			for j, k := range cur.kids {
				if k.key == s {
					next, at = k, j
					break
				}
			}
		}
		if next == nil {
			return place{parent: cur, rest: path[i:]}
		}
		if i == len(path)-1 {
			return place{parent: cur, at: next, index: at}
		}
		cur = next
	}
	return place{at: cur}
}

// missing is what operators do that take away from a place where nothing is: nothing, where something could be. A
// path that runs through a scalar, or by name into an array, could never lead anywhere.
func (p place) missing(path []string) error {
	if p.block == nil {
		return nil
	}
	return merr.New(merr.PathNotViable, "Cannot use the part (%s) of (%s) to traverse the element ({%s: %s})",
		p.bad, joined(path), p.block.key, Show(p.block.value()))
}

// put sets the value at a path, making what is missing on the way.
func (n *node) put(path []string, v value.Value) error {
	p := n.find(path)
	return p.put(v)
}

func (p place) put(v value.Value) error {
	if p.block != nil {
		return merr.New(merr.PathNotViable, "Cannot create field '%s' in element {%s: %s}", p.bad, p.block.key,
			Show(p.block.value()))
	}
	if p.at != nil {
		p.at.set(v)
		return nil
	}
	cur := p.parent
	for i, s := range p.rest {
		k := &node{key: s}
		if cur.arr {
			at := arrayIndex(s)
			if at < 0 {
				return merr.New(merr.PathNotViable, "Cannot create field '%s' in element {%s: %s}", s, cur.key,
					Show(cur.value()))
			}
			if at-len(cur.kids) > maxPad {
				return merr.New(merr.BadValue, "can't backfill more than %d elements", maxPad)
			}
			for len(cur.kids) < at {
				cur.kids = append(cur.kids, &node{v: value.NullValue()})
			}
		}
		cur.kids = append(cur.kids, k)
		if i == len(p.rest)-1 {
			k.set(v)
			return nil
		}
		k.open = true
		cur = k
	}
	return nil
}

// remove takes a field away; in an array it leaves null.
func (p place) remove() {
	if p.at == nil || p.parent == nil {
		return
	}
	if p.parent.arr {
		p.at.set(value.NullValue())
		return
	}
	p.parent.kids = append(p.parent.kids[:p.index:p.index], p.parent.kids[p.index+1:]...)
}

// arrayIndex reads a path component as an array index, -1 when it is none.
func arrayIndex(s string) int {
	if s == "" || len(s) > 9 || len(s) > 1 && s[0] == '0' {
		return -1
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || strings.ContainsAny(s, "+-") {
		return -1
	}
	return n
}
