package run

import (
	"cmp"
	"slices"
)

// The edges of a vertex, and its neighbours, come in the order in which the edges were made, where that costs no more
// than to sort what is read anyway: all of them are taken, and they are few.
//
// Example: of g.V('a').out().fold() the neighbours come in the order of their edges. Of g.V('a').out().limit(1) the
// first edge that the store gives is taken, so that the others aren't read.

const (
	maxInOrder = 1000    // edges of one vertex
	orderBytes = 1 << 20 // of their documents
)

// inOrder gives what a look-up of edges finds in the order in which it was made. Where there is too much of it, it
// comes as the look-up gives it.
type inOrder struct {
	edges *rowIter
	own   func(d []byte) (any, error) // makes of a document that nobody changes what edges.make makes of any; nil: that
	make  func(d []byte) (any, error)
	begun bool
	list  []madeEdge // not yet given
	few   [8]madeEdge
	docs  []byte
	held  holder
}

// madeEdge is an edge with its place in the order.
type madeEdge struct {
	made     uint64
	from, to int // its document among docs
}

func (o *inOrder) next(x *exec) (any, bool, error) {
	if !o.begun {
		o.begun = true
		if err := o.gather(x); err != nil {
			return nil, false, err
		}
	}
	for len(o.list) > 0 {
		e := o.list[0]
		o.list = o.list[1:]
		if v, err := o.make(o.docs[e.from:e.to:e.to]); v != nil || err != nil {
			return v, err == nil, err
		}
	}
	if o.docs != nil {
		o.forget()
	}
	return o.edges.next(x)
}

// gather takes the edges and sorts them. It stops where there are too many, or the request has no memory for more.
func (o *inOrder) gather(x *exec) error {
	o.list, o.make = o.few[:0], o.edges.make
	for {
		d, ok, err := o.edges.document(x)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if o.docs == nil {
			o.docs = make([]byte, 0, 4*len(d))
		}
		at := len(o.docs)
		o.docs = append(o.docs, d...)
		o.list = append(o.list, madeEdge{o.edges.rows.Made(), at, len(o.docs)})
		full := len(o.list) > len(o.few) && o.held.hold(x, 1, valueSize+int64(len(d))) != nil
		if full || len(o.list) > maxInOrder || len(o.docs) > orderBytes {
			return nil
		}
	}
	if o.own != nil && len(o.list) <= len(o.few) { // of many, one that is kept would keep all documents
		o.make = o.own
	}
	slices.SortFunc(o.list, func(a, b madeEdge) int { return cmp.Compare(a.made, b.made) })
	return nil
}

func (o *inOrder) forget() {
	o.list, o.docs = nil, nil
	o.held.release()
}

func (o *inOrder) close() {
	o.edges.close()
	o.begun = true
	o.forget()
}
