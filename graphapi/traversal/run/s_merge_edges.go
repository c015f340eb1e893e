package run

import (
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// mergeEnd finds the vertex that a merge map has under OUT or IN.
func (m *mergeArgs) mergeEnd(x *exec, t *trav, what *gvalue.Map, dir gvalue.Direction) (*graph.Vertex, error) {
	v, ok := what.Get(dir)
	if mv, isMerge := v.(gvalue.Merge); isMerge {
		o := m.outV
		if mv == gvalue.MergeInV {
			o = m.inV
		}
		if o == nil {
			return nil, errf(Runtime, "option(%s) is missing", mv)
		}
		var err error
		if v, ok, err = o.eval(x, t); err != nil {
			return nil, err
		}
		if desc, isMap := v.(*gvalue.Map); isMap {
			if err := (&mergeArgs{op: "mergeV"}).valid(desc); err != nil {
				return nil, err
			}
			d, err := draftOf(desc, graph.DefaultLabel)
			if err != nil {
				return nil, err
			}
			_, hasLabel := desc.Get(gvalue.TLabel)
			found, err := x.findVertices(d, hasLabel)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, errf(Runtime, "option(%s) names no vertex that exists", mv)
			}
			v = found[0]
		}
	}
	if !ok {
		return nil, errf(Runtime, "The vertex of Direction.%s is missing", dir)
	}
	vx, isVertex := v.(*gvalue.Vertex)
	if !isVertex {
		vx = &gvalue.Vertex{ID: v}
	}
	n, err := x.node(vx)
	if err == nil && n == nil {
		err = errf(Runtime, "Vertex id could not be resolved from mergeE: %s", gvalue.Text(vx.ID))
	}
	return n, err
}

func (m *mergeArgs) mergeE(x *exec, t *trav) (iter, error) {
	what, err := m.search(x, t)
	if err != nil {
		return nil, err
	}
	d, err := draftOf(what, "")
	if err != nil {
		return nil, err
	}
	_, hasOut := what.Get(gvalue.OUT)
	_, hasIn := what.Get(gvalue.IN)
	found, err := m.findEdges(x, t, what, d, hasOut, hasIn)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return &sliceIter{vs: found}, m.onMatch(x, t, found)
	}
	d, all, err := m.merged(x, t, what)
	if err != nil {
		return nil, err
	}
	if _, ok := all.Get(gvalue.OUT); !ok {
		return nil, errf(Runtime, "Out Vertex not specified in onCreate - edge cannot be created")
	}
	if _, ok := all.Get(gvalue.IN); !ok {
		return nil, errf(Runtime, "In Vertex not specified in onCreate - edge cannot be created")
	}
	out, err := m.mergeEnd(x, t, all, gvalue.OUT)
	if err != nil {
		return nil, err
	}
	in, err := m.mergeEnd(x, t, all, gvalue.IN)
	if err != nil {
		return nil, err
	}
	e, err := x.createEdge(d, out, in)
	return &sliceIter{vs: []any{e}}, err
}

func (m *mergeArgs) findEdges(x *exec, t *trav, what *gvalue.Map, d *draft, hasOut, hasIn bool) ([]any, error) {
	var out, in *graph.Vertex
	var err error
	if hasOut {
		if out, err = m.mergeEnd(x, t, what, gvalue.OUT); err != nil {
			return nil, err
		}
	}
	if hasIn {
		if in, err = m.mergeEnd(x, t, what, gvalue.IN); err != nil {
			return nil, err
		}
	}
	mk := func(b []byte) (any, error) { return x.g.NewEdge(copyOf(b)), nil }
	var it iter
	switch {
	case out != nil:
		w := &walk{order: compile.Partly}
		if in != nil {
			w.far = []value.Value{in.StoredID}
		}
		it, err = x.adjacent(out, gvalue.OUT, w, mk)
	case in != nil:
		it, err = x.adjacent(in, gvalue.IN, &walk{order: compile.Partly}, mk)
	case d.hasID:
		it, err = x.byID(false, d.id)
	default:
		preds, pk, e := x.described(d, false)
		if e != nil {
			return nil, e
		}
		if preds = append(preds, graph.EdgesOnly()); d.label != "" {
			preds = append(preds, graph.Labelled(d.label))
		}
		it, err = x.scan(&selection{pred: access.And(preds...)}, pk)
	}
	if it == nil || err != nil {
		return nil, err
	}
	defer it.close()
	var found []any
	for {
		v, ok, err := it.next(x)
		if !ok || err != nil {
			return found, err
		}
		n := graph.EdgeOf(v.(*gvalue.Edge))
		if in != nil && !graph.LeadsTo(n.Doc, in) || !d.fits(v, d.label != "") {
			continue
		}
		if err := x.hold(v); err != nil {
			return nil, err
		}
		found = append(found, v)
	}
}
