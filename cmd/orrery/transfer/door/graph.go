package door

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
)

// Graph is a graph, whose elements are written and read in their stored form by MongoDB's API, which shows their kinds.
//
// It adds what files don't have: the partition key of a vertex, and what an edge has from its ends, which it looks up.
type Graph struct {
	*Mongo
	mode   graph.KeyMode
	key    string // the property that is the partition key
	Beside bool   // Rows gives the edges of a vertex beside it
}

// plainKey is the partition key path of a graph that has none of its own.
const plainKey = "_partitionKey"

// OpenGraph opens a graph. If it is absent it is created: with the property as partition key, if one is given.
func OpenGraph(ctx context.Context, s *Server, db, name string, create []string) (*Graph, error) {
	if len(create) == 0 {
		create = []string{"/" + plainKey}
	}
	m, err := OpenMongo(ctx, s, db, name, create)
	if err != nil {
		return nil, err
	}
	g := &Graph{Mongo: m}
	switch {
	case len(m.keys) == 0, len(m.keys) == 1 && m.keys[0] == "_id": // a new one with the key /id has told its path
		g.mode = graph.KeyID
	case len(m.keys) > 1 || strings.Contains(m.keys[0], "."):
		return nil, fmt.Errorf("the partition key of %s/%s is no single property: no graph can be there", db, name)
	case m.keys[0] == plainKey:
		g.mode = graph.KeySystem
	default:
		g.mode, g.key = graph.KeyProperty, m.keys[0]
	}
	return g, nil
}

// Prepare implements transfer.Target. Edges are completed when they are sent.
func (g *Graph) Prepare(b *transfer.Batch, r *transfer.Row, n int64) error {
	if r.Kind == transfer.Edge {
		b.Rows = append(b.Rows, transfer.Sent{Line: r.Line, Body: b.Append(r.Doc), Key: [2]int{0, 1}})
		return nil
	}
	key := doc.Get(r.Doc, "_id")
	if g.mode == graph.KeyProperty {
		var vals []value.Value
		graph.EachValue(doc.Get(r.Doc, g.key), func(_ int, v, _, _ value.Value) bool {
			vals = append(vals, v)
			return true
		})
		if len(vals) != 1 || !vals[0].IsDefined() {
			return fmt.Errorf("the vertex needs one value of %s, which is the partition key", g.key)
		}
		key = vals[0]
	}
	at, d := bson.Begin(nil)
	for it := value.ObjectOf(r.Doc).Iter(); it.Next(); {
		name := string(it.Key())
		if name != g.key || g.mode != graph.KeyProperty {
			d = append(d, it.Element()...)
		}
		if name != "label" {
			continue
		}
		switch g.mode { // where Gremlin puts it
		case graph.KeySystem:
			d = value.AppendElement(d, plainKey, key)
		case graph.KeyProperty:
			d = value.AppendElement(d, g.key, key)
		}
	}
	d = bson.End(d, at)
	return g.Mongo.Prepare(b, &transfer.Row{Doc: d, Line: r.Line}, n)
}

// Write implements transfer.Target. Rows of edges have a Key in the batch.
func (g *Graph) Write(ctx context.Context, b *transfer.Batch, rows []int, replace bool,
	verdict func(int, transfer.Verdict, string)) (time.Duration, error) {
	var edges []int
	for _, row := range rows {
		if b.Rows[row].Key[1] > 0 {
			edges = append(edges, row)
		}
	}
	if len(edges) == 0 {
		return g.Mongo.Write(ctx, b, rows, replace, verdict)
	}
	ends, err := g.ends(ctx, b, edges)
	if err != nil {
		return 0, err
	}
	whole := &transfer.Batch{Rows: make([]transfer.Sent, len(b.Rows))}
	var ready []int
	for _, row := range rows {
		body := b.Part(b.Rows[row].Body)
		if b.Rows[row].Key[1] > 0 {
			var fault string
			if body, fault = g.complete(body, ends); fault != "" {
				verdict(row, transfer.Refused, fault)
				continue
			}
		}
		whole.Rows[row].Body = whole.Append(body)
		ready = append(ready, row)
	}
	if len(ready) == 0 {
		return 0, nil
	}
	return g.Mongo.Write(ctx, whole, ready, replace, verdict)
}

// end is what an edge has from a vertex.
type end struct {
	label string
	key   value.Value
	idval value.Value
	many  bool // several vertices have the id
}

// endFields is the projection of a look-up of ends.
func (g *Graph) endFields() []byte {
	at, b := bson.Begin(nil)
	for _, name := range []string{"label", "_idValue", plainKey, g.key} {
		if name != "" {
			b = bson.AppendInt32(b, name, 1)
		}
	}
	return bson.End(b, at)
}

// ends looks up the ends of edges.
func (g *Graph) ends(ctx context.Context, b *transfer.Batch, edges []int) (map[string]end, error) {
	found := map[string]end{}
	wanted := map[string]bool{}
	for _, row := range edges {
		d := b.Part(b.Rows[row].Body)
		wanted[doc.Get(d, "_sink").Str()], wanted[doc.Get(d, "_vertexId").Str()] = true, true
	}
	at, filter := bson.Begin(nil)
	id, filter := bson.BeginObject(filter, "_id")
	in, filter := bson.BeginArray(filter, "$in")
	i := 0
	for w := range wanted {
		filter = bson.AppendStringValue(bson.AppendIndexHead(filter, bson.TypeString, i), w)
		i++
	}
	filter = bson.End(bson.End(bson.End(filter, in), id), at)
	err := g.Find(ctx, filter, g.endFields(), func(r *transfer.Row) error {
		id := doc.Get(r.Doc, "_id").Str()
		label := doc.Get(r.Doc, "label").Str()
		if label == "" {
			label = graph.DefaultLabel
		}
		e := end{label: label, idval: doc.Get(r.Doc, "_idValue").Clone()}
		switch g.mode {
		case graph.KeyID:
			e.key = value.StringOf(id)
		case graph.KeySystem:
			e.key = doc.Get(r.Doc, plainKey).Clone()
			if e.key.Str() != id {
				return nil // an edge with this id
			}
		default:
			e.key = doc.Get(r.Doc, g.key).Clone()
		}
		_, e.many = found[id]
		found[id] = e
		return nil
	})
	return found, err
}

// complete returns an edge in its stored form, or why it can't be written.
func (g *Graph) complete(d []byte, ends map[string]end) ([]byte, string) {
	out, in := doc.Get(d, "_vertexId").Str(), doc.Get(d, "_sink").Str()
	for _, id := range []string{out, in} {
		switch e, ok := ends[id]; {
		case !ok:
			return nil, fmt.Sprintf("there is no vertex %q for the edge", id)
		case e.many:
			return nil, fmt.Sprintf("several vertices have the id %q, so the edge has no place", id)
		}
	}
	from, to := ends[out], ends[in]
	view := graph.Graph{Mode: g.mode}
	own := doc.Get(d, "_id").Str()
	id := view.StoredEdgeID(own, value.StringOf(out))
	at, b := bson.Begin(make([]byte, 0, len(d)+200))
	b = bson.AppendString(b, "_id", id)
	if kept := doc.Get(d, "_idValue"); kept.IsDefined() {
		b = value.AppendElement(b, "_idValue", kept)
	} else if id != own {
		b = bson.AppendString(b, "_idValue", own)
	}
	b = value.AppendElement(b, "label", doc.Get(d, "label"))
	switch g.mode {
	case graph.KeySystem:
		b = value.AppendElement(b, plainKey, from.key)
	case graph.KeyProperty:
		b = value.AppendElement(b, g.key, from.key)
	}
	b = bson.AppendBool(b, "_isEdge", true)
	b = bson.AppendString(b, "_sink", in)
	b = value.AppendElement(b, "_sinkIdValue", to.idval)
	b = bson.AppendString(b, "_sinkLabel", to.label)
	b = value.AppendElement(b, "_sinkPartition", to.key)
	b = bson.AppendString(b, "_vertexId", out)
	b = value.AppendElement(b, "_vertexIdValue", from.idval)
	b = bson.AppendString(b, "_vertexLabel", from.label)
	for it := value.ObjectOf(d).Iter(); it.Next(); {
		if key := string(it.Key()); !graph.IsReserved(key) && key != g.key {
			b = append(b, it.Element()...)
		}
	}
	return bson.End(b, at), ""
}

// filterOf returns {_isEdge: true}, or {_isEdge: {$ne: true}}, and further elements.
func filterOf(edges bool, more func([]byte) []byte) []byte {
	at, b := bson.Begin(nil)
	if edges {
		b = bson.AppendBool(b, "_isEdge", true)
	} else {
		ne, inner := bson.BeginObject(b, "_isEdge")
		b = bson.End(bson.AppendBool(inner, "$ne", true), ne)
	}
	if more != nil {
		b = more(b)
	}
	return bson.End(b, at)
}

// besideRows is the number of vertices whose edges are looked up together. Their edges are in memory at once.
const besideRows = 100

// Rows implements transfer.Source: the vertices, then the edges; or the vertices with their edges beside them.
func (g *Graph) Rows(ctx context.Context, f func(*transfer.Row) error) error {
	if !g.Beside {
		err := g.Find(ctx, filterOf(false, nil), bson.Empty, f)
		if err != nil {
			return err
		}
		return g.Find(ctx, filterOf(true, nil), bson.Empty, func(r *transfer.Row) error {
			r.Kind = transfer.Edge
			return f(r)
		})
	}
	var some [][]byte
	flush := func() error {
		rows, err := g.beside(ctx, some)
		for i := range rows {
			if err == nil {
				err = f(&rows[i])
			}
		}
		some = some[:0]
		return err
	}
	err := g.Find(ctx, filterOf(false, nil), bson.Empty, func(r *transfer.Row) error {
		if some = append(some, append([]byte(nil), r.Doc...)); len(some) == besideRows {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	return err
}

// beside returns vertices with their edges.
func (g *Graph) beside(ctx context.Context, vertices [][]byte) ([]transfer.Row, error) {
	if len(vertices) == 0 {
		return nil, nil
	}
	rows := make([]transfer.Row, len(vertices))
	at := map[string]int{}
	key := func(id, pk value.Value) string {
		if g.mode != graph.KeyProperty {
			return id.Str()
		}
		return id.Str() + "\x00" + string(value.AppendTyped(nil, pk))
	}
	for i, d := range vertices {
		rows[i] = transfer.Row{Kind: transfer.Vertex, Doc: d}
		at[key(doc.Get(d, "_id"), doc.Get(d, g.key))] = i
	}
	for _, side := range []string{"_vertexId", "_sink"} {
		filter := filterOf(true, func(b []byte) []byte {
			end, b := bson.BeginObject(b, side)
			in, b := bson.BeginArray(b, "$in")
			for i, d := range vertices {
				b = bson.AppendStringValue(bson.AppendIndexHead(b, bson.TypeString, i), doc.Get(d, "_id").Str())
			}
			return bson.End(bson.End(b, in), end)
		})
		err := g.Find(ctx, filter, bson.Empty, func(r *transfer.Row) error {
			pk := doc.Get(r.Doc, g.key)
			if side == "_sink" {
				pk = doc.Get(r.Doc, "_sinkPartition")
			}
			i, ok := at[key(doc.Get(r.Doc, side), pk)]
			if !ok {
				return nil
			}
			d := append([]byte(nil), r.Doc...)
			if side == "_sink" {
				rows[i].In = append(rows[i].In, d)
			} else {
				rows[i].Out = append(rows[i].Out, d)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
