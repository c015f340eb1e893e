package project

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
)

// Plain reports whether the projection changes nothing.
func (p *Projection) Plain() bool { return p.plain }

// Append appends the projected document to dst.
func (p *Projection) Append(dst []byte, e *expr.Env, doc value.Value) ([]byte, error) {
	if p.plain {
		return append(dst, doc.Bytes()...), nil
	}
	if p.root.sets {
		e = e.With(doc)
	}
	a := applier{p: p, e: e, doc: doc}
	at, dst := bson.Begin(dst)
	dst, err := a.object(dst, doc, p.root)
	return bson.End(dst, at), err
}

// Apply returns the projected document.
func (p *Projection) Apply(e *expr.Env, doc value.Value) (value.Value, error) {
	if p.plain {
		return doc, nil
	}
	b, err := p.Append(make([]byte, 0, len(doc.Bytes())+32), e, doc)
	return value.ObjectOf(b), err
}

type applier struct {
	p   *Projection
	e   *expr.Env
	doc value.Value
}

// object appends the fields of v according to the tree at n. If v isn't an object, only computed fields are appended.
func (a *applier) object(dst []byte, v value.Value, n *node) ([]byte, error) {
	var seen uint64
	var err error
	if v.Kind() == value.Object {
		for it := v.Iter(); it.Next(); {
			k := n.byName[string(it.Key())]
			if k == nil {
				if a.p.mode != include {
					dst = append(dst, it.Element()...)
				}
				continue
			}
			if a.appendsLater(k) {
				continue
			}
			seen |= mark(n, k)
			if dst, err = a.known(dst, it.Element(), it.Key(), it.Value(), k); err != nil {
				return dst, err
			}
		}
	}
	if !n.sets {
		return dst, nil
	}
	for _, k := range n.kids {
		if !k.sets || seen&mark(n, k) != 0 && (a.p.mode == add || !k.leaf) {
			continue
		}
		if dst, err = a.created(dst, k); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendsLater reports whether a field is skipped at its position because its computed value is appended at the end.
func (a *applier) appendsLater(k *node) bool { return k.x != nil && a.p.mode != add }

// mark returns a bit for each child. Children from the 64th on share one bit, which only decides whether they are
// checked again.
func mark(n, k *node) uint64 {
	for i, c := range n.kids {
		if c == k {
			if i > 62 {
				return 0
			}
			return 1 << i
		}
	}
	return 0
}

// known appends a stored field that the tree names.
func (a *applier) known(dst, element, key []byte, v value.Value, k *node) ([]byte, error) {
	switch {
	case k.x != nil: // $addFields
		x, err := k.x(a.e)
		return value.AppendElement(dst, key, x), err
	case k.fn != nil:
		x, err := k.fn(a.p, a.doc, v)
		return value.AppendElement(dst, key, x), err
	case k.leaf:
		if k.hide {
			return dst, nil
		}
		return append(dst, element...), nil
	}
	return a.nested(dst, key, v, k)
}

func (a *applier) nested(dst, key []byte, v value.Value, k *node) ([]byte, error) {
	switch v.Kind() {
	case value.Object:
		at, dst := bson.BeginObject(dst, string(key))
		dst, err := a.object(dst, v, k)
		return bson.End(dst, at), err
	case value.Array:
		x, err := a.array(v, k)
		return value.AppendElement(dst, key, x), err
	}
	switch {
	case a.p.mode == exclude:
		return value.AppendElement(dst, key, v), nil
	case k.sets:
		return a.created(dst, k)
	}
	return dst, nil
}

func (a *applier) array(v value.Value, k *node) (value.Value, error) {
	at, b := bson.Begin(make([]byte, 0, len(v.Bytes())))
	n := 0
	for it := v.Iter(); it.Next(); {
		x := it.Value()
		var err error
		switch {
		case x.Kind() == value.Array:
			x, err = a.array(x, k)
		case x.Kind() == value.Object || a.p.mode == add || a.p.mode == include && k.sets:
			oa, ob := bson.Begin(make([]byte, 0, 64))
			ob, err = a.object(ob, x, k)
			x = value.ObjectOf(bson.End(ob, oa))
		case a.p.mode == include:
			continue
		}
		if err != nil {
			return x, err
		}
		b = value.AppendIndexed(b, n, x)
		n++
	}
	return value.ArrayOf(bson.End(b, at)), nil
}

// created appends a computed field that the document doesn't have, or the object that contains computed fields.
func (a *applier) created(dst []byte, k *node) ([]byte, error) {
	if k.x != nil {
		v, err := k.x(a.e)
		return value.AppendElement(dst, k.name, v), err
	}
	at, dst := bson.BeginObject(dst, k.name)
	dst, err := a.object(dst, value.Undef(), k)
	return bson.End(dst, at), err
}
