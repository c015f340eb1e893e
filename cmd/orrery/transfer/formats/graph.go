package formats

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Elements of graphs are passed on in their stored form (graphapi/graph/element.go), as far as a file has it: a vertex
// without its partition key, an edge without what it has from its ends. The door adds both.
//
// Files have an edge beside one of its ends or anywhere, but an edge can only be written when its ends are there. So a
// file is read twice: for its vertices, then for its edges.

// stored appends the id of an element: as text, and in its own kind if it was an integer.
func stored(b []byte, name, kept string, id any) ([]byte, error) {
	switch x := id.(type) {
	case nil:
		return nil, errors.New("an id is missing")
	case string:
		return bson.AppendString(b, name, x), nil
	case int32:
		return bson.AppendInt32(bson.AppendString(b, name, strconv.Itoa(int(x))), kept, x), nil
	case int64:
		return bson.AppendInt64(bson.AppendString(b, name, strconv.FormatInt(x, 10)), kept, x), nil
	}
	return bson.AppendString(b, name, gvalue.Text(id)), nil
}

// vertexDoc returns the stored form of a vertex.
func vertexDoc(v *gvalue.Vertex) ([]byte, error) {
	at, b := bson.Begin(nil)
	b, err := stored(b, "_id", "_idValue", v.ID)
	if err != nil {
		return nil, err
	}
	b = bson.AppendString(b, "label", v.Label)
	done := map[string]bool{}
	for i, p := range v.Properties {
		if done[p.Label] {
			continue
		}
		done[p.Label] = true
		var vals []graph.Value
		for j, q := range v.Properties[i:] {
			if q.Label != p.Label {
				continue
			}
			val, err := graph.ToValue(q.Value)
			if err != nil {
				return nil, err
			}
			one := graph.Value{Val: val, ID: propertyID(v, &q, i+j)}
			if len(q.Properties) > 0 {
				if one.Meta, err = graph.Metas(value.Value{}, q.Properties); err != nil {
					return nil, err
				}
			}
			vals = append(vals, one)
		}
		if !graph.ValidKey(p.Label) || graph.IsReserved(graph.StoredKey(p.Label)) {
			return nil, fmt.Errorf("a property can't be called %q", p.Label)
		}
		b = graph.AppendProperty(b, graph.StoredKey(p.Label), vals)
	}
	return bson.End(b, at), nil
}

// propertyID returns the id of a property of a vertex: its own, or one that follows from its place.
func propertyID(v *gvalue.Vertex, p *gvalue.VertexProperty, at int) value.Value {
	switch id := p.ID.(type) {
	case nil:
		d := transfer.DerivedID(int64(at), []byte(gvalue.Text(v.ID)+"\x00"+p.Label))
		return value.StringOf(string(value.AppendUUID(nil, d[:])))
	case string:
		return value.StringOf(id)
	default:
		if val, err := graph.ToValue(id); err == nil {
			return val
		}
		return value.StringOf(gvalue.Text(id))
	}
}

// edgeDoc returns the stored form of an edge, without what it has from its ends. n is its number in the file.
func edgeDoc(e *gvalue.Edge, n int64) ([]byte, error) {
	at, b := bson.Begin(nil)
	var err error
	if e.ID == nil {
		d := transfer.DerivedID(n, []byte(gvalue.Text(e.OutV)+"\x00"+e.Label+"\x00"+gvalue.Text(e.InV)))
		e.ID = string(value.AppendUUID(nil, d[:]))
	}
	if b, err = stored(b, "_id", "_idValue", e.ID); err != nil {
		return nil, err
	}
	if e.InV == nil || e.OutV == nil {
		return nil, errors.New("an edge has no in-vertex or no out-vertex")
	}
	if e.Label == "" {
		e.Label = "edge"
	}
	b = bson.AppendBool(bson.AppendString(b, "label", e.Label), "_isEdge", true)
	if b, err = stored(b, "_sink", "_sinkIdValue", e.InV); err != nil {
		return nil, err
	}
	if b, err = stored(b, "_vertexId", "_vertexIdValue", e.OutV); err != nil {
		return nil, err
	}
	for _, p := range e.Properties {
		v, err := graph.ToValue(p.Value)
		if err != nil {
			return nil, err
		}
		if !graph.ValidKey(p.Key) || graph.IsReserved(graph.StoredKey(p.Key)) {
			return nil, fmt.Errorf("a property can't be called %q", p.Key)
		}
		b = doc.AppendElement(b, graph.StoredKey(p.Key), v)
	}
	return bson.End(b, at), nil
}

// elementsIn are the vertices and edges of one row of a file.
type elementsIn struct {
	vertices []*gvalue.Vertex
	out, in  []*gvalue.Edge // beside their out-vertex or anywhere, and beside their in-vertex
}

// passes reads a file for its vertices, for the edges that stand beside their out-vertex or anywhere, and, if there are
// none, for those beside their in-vertex.
type passes struct {
	file *File
	open func(*File) (rows, error)
	r    rows
	pass int
	outs int64
	ins  int64
	line int64
	left [][]byte
	what transfer.Kind
}

// rows reads the rows of a file of a graph.
type rows interface {
	// next returns the elements of the next row and its line. The errors are those of transfer.Reader.
	next() (*elementsIn, int64, error)
	Close() error
}

func newPasses(f *File, open func(*File) (rows, error)) (transfer.Reader, error) {
	if !f.In.Again() {
		return nil, errors.New("a graph is read twice, which the standard input can't be: name a file")
	}
	return &passes{file: f, open: open}, nil
}

func (p *passes) Next(r *transfer.Row) error {
	for {
		if len(p.left) > 0 {
			*r = transfer.Row{Kind: p.what, Doc: p.left[0], Line: p.line}
			p.left = p.left[1:]
			return checked(r)
		}
		if p.r == nil {
			if p.pass == 3 || p.pass == 2 && (p.outs > 0 || p.ins == 0) {
				return io.EOF
			}
			var err error
			if p.r, err = p.open(p.file); err != nil {
				return err
			}
			p.pass++
		}
		els, line, err := p.r.next()
		if err == io.EOF {
			err = p.r.Close()
			p.r = nil
			p.file.In.Rewind()
			if err == nil {
				continue
			}
		}
		var bad *transfer.Bad
		if errors.As(err, &bad) && p.pass > 1 {
			continue // the first pass has told
		}
		if err == nil {
			err = p.take(els, line)
		}
		if err != nil {
			return err
		}
	}
}

// take converts the elements that this pass wants.
func (p *passes) take(els *elementsIn, line int64) error {
	p.line, p.what = line, transfer.Edge
	edges := els.out
	switch p.pass {
	case 1:
		p.what = transfer.Vertex
		p.outs += int64(len(els.out))
		p.ins += int64(len(els.in))
		for _, v := range els.vertices {
			d, err := vertexDoc(v)
			if err != nil {
				return &transfer.Bad{Line: line, Reason: err.Error(), Text: []byte(gvalue.Text(v.ID))}
			}
			p.left = append(p.left, d)
		}
		return nil
	case 3:
		edges = els.in
	}
	for i, e := range edges {
		d, err := edgeDoc(e, line<<20+int64(i))
		if err != nil {
			return &transfer.Bad{Line: line, Reason: err.Error(), Text: []byte(gvalue.Text(e.ID))}
		}
		p.left = append(p.left, d)
	}
	return nil
}

func (p *passes) Close() error {
	if p.r != nil {
		return p.r.Close()
	}
	return nil
}

// view shows stored elements of any graph as values.
var view graph.Graph

// isEdge reports whether a stored element is an edge.
func isEdge(d []byte) bool { return graph.IsEdge(d) }
