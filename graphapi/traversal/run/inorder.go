package run

import (
	"cmp"
	"slices"
)

// The edges of a vertex, and its neighbours, are returned in the order in which the edges were created, if that costs
// only a sort of data that is read anyway: all of them are needed, and they are few.
//
// Example: g.V('a').out().fold() returns the neighbours in the order of their edges. g.V('a').out().limit(1) takes the
// first edge that the store returns, so that no other edge is read.

const (
	maxInOrder = 1000    // edges of one vertex
	orderBytes = 1 << 20 // size of their documents
)

// inOrder returns the result of a look-up of edges in creation order. If the result is too large, it has the order of
// the look-up.
type inOrder struct {
	edges *rowIter
	make  func(d []byte) (any, error) // of a document in docs
	own   func(d []byte) (any, error) // like make, for a document that is never modified; nil: use make
	begun bool
	list  []madeEdge // not yet returned
	few   [8]madeEdge
	docs  []byte
	held  holder
}

// madeEdge is an edge with its position in creation order.
type madeEdge struct {
	made     uint64
	from, to int // position of its document in docs
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

// gather reads the edges and sorts them. It stops when there are too many, or when the request has no memory for more.
func (o *inOrder) gather(x *exec) error {
	o.list = o.few[:0]
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
	if o.own != nil && len(o.list) <= len(o.few) {
		// with many edges, a single kept element would keep all documents in memory
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
