package formats

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	codec "github.com/orrerydb/orrery/graphapi/wire/graphson"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// GraphSON of all versions. A file has a vertex a line, with its edges, as TinkerPop writes graphs:
//
//	{"id":1,"label":"person","outE":{"knows":[{"id":7,"inV":2,"properties":{"since":2009}}]},
//	 "properties":{"name":[{"id":0,"value":"Ann"}]}}
//
// or lists of vertices and edges ({"vertices": [..], "edges": [..]}, also with the types of a tinker:graph), or those
// of version 1 with the fields _id, _type, _inV, _outV and _label. What is written is version 3, a vertex a line.
var graphson = &Format{Name: "graphson", About: "GraphSON 1 to 3", Suffixes: []string{".graphson", ".json", ".jsonl"},
	Output: ".graphson",
	Door:   Graph, Typed: true, Beside: true,
	Is: func(name string, head []byte) bool {
		return strings.HasSuffix(name, ".graphson") || bytes.Contains(head, []byte(`"outE"`)) ||
			bytes.Contains(head, []byte(`"inE"`)) || bytes.Contains(head, []byte(`"tinker:graph"`))
	},
	Read: func(f *File) (transfer.Reader, error) { return newPasses(f, openGraphson) },
	Write: func(o *Output) (transfer.Writer, error) {
		f, err := o.create(o.Path)
		return &graphsonWriter{file: f}, err
	}}

type graphsonRows struct {
	lines *chunks // a vertex a line
	list  *elements
}

func openGraphson(f *File) (rows, error) {
	in, err := f.openText()
	if err != nil {
		return nil, err
	}
	g := &graphsonRows{lines: newChunks(in)}
	for err == nil && len(g.lines.rest()) < firstChunk && bytes.IndexByte(g.lines.rest(), '\n') < 0 {
		err = g.lines.more()
	}
	if err != nil && err != io.EOF {
		return nil, errors.Join(err, in.Close())
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(g.lines.rest(), " \t\r\n"), []byte("\n"))
	line = bytes.TrimSpace(line)
	start := line[:min(len(line), 200)]
	if len(line) == 0 || line[0] == '[' || json.Skip(line, 0) != len(line) ||
		bytes.Contains(start, []byte(`"vertices"`)) || bytes.Contains(start, []byte(`"tinker:graph"`)) {
		g.list = &elements{chunks: g.lines}
	}
	return g, nil
}

func (g *graphsonRows) Close() error { return g.lines.Close() }

func (g *graphsonRows) next() (*elementsIn, int64, error) {
	var text []byte
	var line int64
	var err error
	if g.list != nil {
		text, err = g.list.find()
		line = g.list.n
	} else {
		for err == nil && len(text) == 0 {
			text, err = g.lines.next()
			text = bytes.TrimSpace(text)
		}
		line = g.lines.line
	}
	if err != nil {
		return nil, line, err
	}
	els, err := graphsonElements(text)
	if err != nil {
		return nil, line, &transfer.Bad{Line: line, Reason: err.Error(), Text: text}
	}
	return els, line, nil
}

// badGraphSON is the error of an object that is no element.
type badGraphSON string

// Error implements error.
func (b badGraphSON) Error() string { return string(b) }

// graphsonElements reads an element: one with a type, or a vertex with its edges.
func graphsonElements(text []byte) (*elementsIn, error) {
	wrapped := append(append([]byte(`{"v":`), text...), '}')
	m, err := codec.ReadMap(wrapped)
	if err != nil {
		return nil, err
	}
	v, _ := m.Get("v")
	switch x := v.(type) {
	case *gvalue.Vertex:
		return &elementsIn{vertices: []*gvalue.Vertex{x}}, nil
	case *gvalue.Edge:
		return &elementsIn{out: []*gvalue.Edge{x}}, nil
	case *gvalue.Map:
		return ofMap(x)
	}
	return nil, badGraphSON("the row is no vertex and no edge")
}

// ofMap reads an element without a type.
func ofMap(m *gvalue.Map) (*elementsIn, error) {
	if t := member(m, "_type"); t != nil {
		return ofVersion1(m, t)
	}
	if member(m, "type") == "edge" || member(m, "inV") != nil && member(m, "outV") != nil {
		return &elementsIn{out: []*gvalue.Edge{edgeOf(m)}}, nil
	}
	v := &gvalue.Vertex{ID: member(m, "id"), Label: text(member(m, "label"))}
	if v.ID == nil {
		return nil, badGraphSON("the row has no id")
	}
	if v.Label == "" {
		v.Label = graph.DefaultLabel
	}
	els := &elementsIn{vertices: []*gvalue.Vertex{v}}
	if props, ok := member(m, "properties").(*gvalue.Map); ok {
		for _, e := range props.Entries() {
			for _, val := range list(e.Value) {
				v.Properties = append(v.Properties, propertyOf(text(e.Key), val))
			}
		}
	}
	eachEdge(member(m, "outE"), func(label string, e *gvalue.Edge) {
		e.Label, e.OutV, e.OutVLabel = label, v.ID, v.Label
		els.out = append(els.out, e)
	})
	eachEdge(member(m, "inE"), func(label string, e *gvalue.Edge) {
		e.Label, e.InV, e.InVLabel = label, v.ID, v.Label
		els.in = append(els.in, e)
	})
	return els, nil
}

// eachEdge calls f with the edges of {label: [edge, ..], ..}.
func eachEdge(of any, f func(label string, e *gvalue.Edge)) {
	m, ok := of.(*gvalue.Map)
	if !ok {
		return
	}
	for _, byLabel := range m.Entries() {
		for _, e := range list(byLabel.Value) {
			switch x := e.(type) {
			case *gvalue.Edge:
				f(text(byLabel.Key), x)
			case *gvalue.Map:
				f(text(byLabel.Key), edgeOf(x))
			}
		}
	}
}

func edgeOf(m *gvalue.Map) *gvalue.Edge {
	e := &gvalue.Edge{ID: member(m, "id"), Label: text(member(m, "label")), InV: member(m, "inV"), OutV: member(m,
		"outV")}
	if props, ok := member(m, "properties").(*gvalue.Map); ok {
		for _, p := range props.Entries() {
			v := p.Value
			if typed, ok := v.(*gvalue.Property); ok {
				v = typed.Value
			}
			e.Properties = append(e.Properties, gvalue.Property{Key: text(p.Key), Value: v})
		}
	}
	return e
}

// propertyOf reads a value of a vertex's property: {"id", "value", "properties"}, with a type or without, or the value.
func propertyOf(key string, v any) gvalue.VertexProperty {
	switch x := v.(type) {
	case *gvalue.VertexProperty:
		x.Label = key
		return *x
	case *gvalue.Map:
		if val, ok := x.Get("value"); ok {
			p := gvalue.VertexProperty{Label: key, ID: member(x, "id"), Value: val}
			if metas, ok := member(x, "properties").(*gvalue.Map); ok {
				for _, m := range metas.Entries() {
					p.Properties = append(p.Properties, gvalue.Property{Key: text(m.Key), Value: m.Value})
				}
			}
			return p
		}
	}
	return gvalue.VertexProperty{Label: key, Value: v}
}

// ofVersion1 reads an element of TinkerPop 2, whose own fields begin with an underscore.
func ofVersion1(m *gvalue.Map, t any) (*elementsIn, error) {
	switch t {
	case "vertex":
		v := &gvalue.Vertex{ID: member(m, "_id"), Label: graph.DefaultLabel}
		if l := text(member(m, "_label")); l != "" {
			v.Label = l
		}
		for _, e := range m.Entries() {
			if key := text(e.Key); !strings.HasPrefix(key, "_") {
				v.Properties = append(v.Properties, gvalue.VertexProperty{Label: key, Value: e.Value})
			}
		}
		return &elementsIn{vertices: []*gvalue.Vertex{v}}, nil
	case "edge":
		e := &gvalue.Edge{ID: member(m, "_id"), Label: text(member(m, "_label")), InV: member(m, "_inV"),
			OutV: member(m, "_outV")}
		for _, p := range m.Entries() {
			if key := text(p.Key); !strings.HasPrefix(key, "_") {
				e.Properties = append(e.Properties, gvalue.Property{Key: key, Value: p.Value})
			}
		}
		return &elementsIn{out: []*gvalue.Edge{e}}, nil
	}
	return nil, badGraphSON("the row is no vertex and no edge")
}

func member(m *gvalue.Map, key string) any {
	v, _ := m.Get(key)
	return v
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

// graphsonWriter writes a vertex a line, with its edges. Readers of TinkerPop make the edges from "inE".
type graphsonWriter struct {
	*file
	b2 []byte
}

var version3 = codec.Codec{Version: 3}

// value appends a value with its type.
func (g *graphsonWriter) value(v any) (err error) {
	g.b2, err = version3.AppendItem(g.b2, v, 1, message.Options{})
	return err
}

func (g *graphsonWriter) Add(r *transfer.Row) error {
	v := view.NewVertex(r.Doc)
	g.b2 = append(g.b2[:0], `{"id":`...)
	if err := g.value(v.ID); err != nil {
		return err
	}
	g.b2 = json.AppendString(append(g.b2, `,"label":`...), v.Label)
	if err := g.edges("inE", "outV", r.In); err != nil {
		return err
	}
	if err := g.edges("outE", "inV", r.Out); err != nil {
		return err
	}
	last := ""
	props := graph.VertexOf(v).LoadVertexProperties()
	for i, p := range props {
		switch {
		case i == 0:
			g.b2 = append(g.b2, `,"properties":{`...)
		case p.Label != last:
			g.b2 = append(g.b2, "],"...)
		default:
			g.b2 = append(g.b2, ',')
		}
		if i == 0 || p.Label != last {
			g.b2 = append(json.AppendString(g.b2, p.Label), ":["...)
		}
		last = p.Label
		g.b2 = append(g.b2, `{"id":`...)
		if err := g.value(p.ID); err != nil {
			return err
		}
		g.b2 = append(g.b2, `,"value":`...)
		if err := g.value(p.Value); err != nil {
			return err
		}
		if err := g.members(`,"properties":{`, p.Properties); err != nil {
			return err
		}
		g.b2 = append(g.b2, '}')
	}
	if len(props) > 0 {
		g.b2 = append(g.b2, "]}"...)
	}
	_, err := g.file.b.Write(append(g.b2, "}\n"...))
	return err
}

// members appends properties as an object.
func (g *graphsonWriter) members(open string, ps []gvalue.Property) error {
	for i, p := range ps {
		if i == 0 {
			g.b2 = append(g.b2, open...)
		} else {
			g.b2 = append(g.b2, ',')
		}
		g.b2 = append(json.AppendString(g.b2, p.Key), ':')
		if err := g.value(p.Value); err != nil {
			return err
		}
	}
	if len(ps) > 0 {
		g.b2 = append(g.b2, '}')
	}
	return nil
}

// edges appends a member {label: [edge, ..], ..}. end is the end that isn't this vertex.
func (g *graphsonWriter) edges(name, end string, docs [][]byte) error {
	if len(docs) == 0 {
		return nil
	}
	byLabel := map[string][]*gvalue.Edge{}
	var labels []string
	for _, d := range docs {
		e := view.NewEdge(d)
		if byLabel[e.Label] == nil {
			labels = append(labels, e.Label)
		}
		byLabel[e.Label] = append(byLabel[e.Label], e)
	}
	g.b2 = append(json.AppendString(append(g.b2, ','), name), ":{"...)
	for i, label := range labels {
		if i > 0 {
			g.b2 = append(g.b2, ',')
		}
		g.b2 = append(json.AppendString(g.b2, label), ":["...)
		for j, e := range byLabel[label] {
			if j > 0 {
				g.b2 = append(g.b2, ',')
			}
			g.b2 = append(g.b2, `{"id":`...)
			if err := g.value(e.ID); err != nil {
				return err
			}
			g.b2 = append(json.AppendString(append(g.b2, ','), end), ':')
			other := e.InV
			if end == "outV" {
				other = e.OutV
			}
			if err := g.value(other); err != nil {
				return err
			}
			if err := g.members(`,"properties":{`, graph.EdgeOf(e).LoadEdgeProperties()); err != nil {
				return err
			}
			g.b2 = append(g.b2, '}')
		}
		g.b2 = append(g.b2, ']')
	}
	g.b2 = append(g.b2, '}')
	return nil
}
