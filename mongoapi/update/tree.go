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

// node is one value of a document that is being changed. A node is opened (split into its children) only when a path
// leads through it. Values that were never opened are copied unchanged to the result.
//
// Example: {$set: {"a.b": 1}} on {a: {b: 0, c: [..]}, d: [..]} opens the document and a, and replaces b. c and d are
// copied as bytes.
type node struct {
	key  string
	v    value.Value // the value while it isn't opened
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

// value returns the current value of n.
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

// append appends the document or array of the opened node n.
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

// place is the end of a path: at if it exists, otherwise the missing part of the path, rest, under parent.
type place struct {
	parent *node
	at     *node
	index  int // of at in parent
	rest   []string
	block  *node // what the path can't pass: a scalar, or an array under a name
	bad    string
}

// find follows a path as far as it exists.
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

// arrayAbove returns the lowest array that a path leads through or into, as far as it exists, or nil.
func (n *node) arrayAbove(path []string) *node {
	var list *node
	for i := range path {
		p := n.find(path[:i])
		if p.at == nil || !p.at.container() {
			break
		}
		if p.at.expand(); p.at.arr {
			list = p.at
		}
	}
	return list
}

// missing is the result of removing operators at a place without a value. It is no error if a value could be there. A
// path through a scalar, or by a name into an array, is an error.
func (p place) missing(path []string) error {
	if p.block == nil {
		return nil
	}
	return merr.New(merr.PathNotViable, "Cannot use the part (%s) of (%s) to traverse the element ({%s: %s})",
		p.bad, joined(path), p.block.key, merr.Show(p.block.value()))
}

// put sets the value at a path and creates missing parents.
func (n *node) put(path []string, v value.Value) error {
	p := n.find(path)
	return p.put(v)
}

func (p place) put(v value.Value) error {
	if p.block != nil {
		return merr.New(merr.PathNotViable, "Cannot create field '%s' in element {%s: %s}", p.bad, p.block.key,
			merr.Show(p.block.value()))
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
					merr.Show(cur.value()))
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

// remove removes a field. In an array it sets the element to null.
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

// arrayIndex returns a path component as an array index, -1 if it isn't one.
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
