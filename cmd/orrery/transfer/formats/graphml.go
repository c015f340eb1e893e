package formats

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// GraphML, with labels as TinkerPop has them: data of the keys labelV and labelE.
//
//	<graphml><key id="age" for="node" attr.name="age" attr.type="int"/>
//	<graph edgedefault="directed">
//	<node id="1"><data key="labelV">person</data><data key="age">29</data></node>
//	<edge id="7" source="1" target="2"><data key="labelE">knows</data></edge></graph></graphml>
//
// What GraphML's types don't hold (dates, lists, several values, integer ids ..) is written as the text of canonical
// Extended JSON, in a key with the attribute orrery.type="json", which other readers see as a string. The ids of
// properties aren't kept. A document type, which can define entities, is refused.
//
// Other programs have the label in data called "label", as Gephi does, or in attributes, as Neo4j's APOC does:
//
//	<node id="n1" labels=":Person:Actor"><edge id="e1" label="KNOWS" ..
//
// It is taken from there if the element has none of TinkerPop's. It couldn't be a property: label is a reserved name.
var graphml = &Format{Name: "graphml", About: "GraphML", Suffixes: []string{".graphml", ".xml"}, Output: ".graphml",
	Door: Graph, Typed: true,
	Read:  func(f *File) (transfer.Reader, error) { return newPasses(f, openGraphML) },
	Write: writeGraphML}

const (
	labelV = "labelV"
	labelE = "labelE"
	idsKey = "orrery.id" // of an element whose id isn't a text
)

type graphmlRows struct {
	f    io.ReadCloser
	x    *xml.Decoder
	keys map[string]graphmlKey
	max  *perRow

	defaults []string // the keys with a default, in their order
}

type graphmlKey struct {
	name, typ string
	of        string // the elements that it is for: node, edge, all
	fallback  string // its value where an element has none
}

// maxXMLDepth bounds the nesting of elements.
const maxXMLDepth = 20

func openGraphML(f *File) (rows, error) {
	in, err := f.openText()
	if err != nil {
		return nil, err
	}
	g := &graphmlRows{f: in, keys: map[string]graphmlKey{}, max: &perRow{r: in}}
	g.x = xml.NewDecoder(g.max)
	return g, nil
}

func (g *graphmlRows) Close() error { return g.f.Close() }

func attr(e *xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (g *graphmlRows) next() (*elementsIn, int64, error) {
	for {
		g.max.n = 0
		t, err := g.x.Token()
		if err == io.EOF {
			return nil, 0, err
		}
		line, _ := g.x.InputPos()
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", line, err)
		}
		switch e := t.(type) {
		case xml.Directive:
			return nil, 0, errors.New("the file has a document type, which can define entities: refused")
		case xml.StartElement:
			switch e.Name.Local {
			case "key":
				k := graphmlKey{name: attr(&e, "attr.name"), typ: attr(&e, "attr.type"), of: attr(&e, "for")}
				if attr(&e, "orrery.type") == "json" {
					k.typ = "json"
				}
				if k.name == "" {
					k.name = attr(&e, "id")
				}
				if k.fallback, err = g.fallback(); err != nil {
					return nil, 0, err
				}
				if g.keys[attr(&e, "id")] = k; k.fallback != "" {
					g.defaults = append(g.defaults, attr(&e, "id"))
				}
				if len(g.keys) > maxColumns {
					return nil, 0, fmt.Errorf("the file has more than %d keys", maxColumns)
				}
			case "hyperedge":
				return nil, 0, fmt.Errorf("line %d: edges of more than two ends aren't read", line)
			case "node", "edge":
				els, err := g.element(&e)
				var bad *transfer.Bad
				if errors.As(err, &bad) {
					bad.Line = int64(line)
				}
				return els, int64(line), err
			}
		}
	}
}

// fallback reads the default of a key up to the key's end.
func (g *graphmlRows) fallback() (text string, err error) {
	for depth := 0; ; {
		t, err := g.x.Token()
		if err != nil {
			return "", err
		}
		switch e := t.(type) {
		case xml.StartElement:
			if depth++; e.Name.Local == "default" {
				text = ""
			}
		case xml.CharData:
			if depth > 0 {
				text += string(e)
			}
		case xml.EndElement:
			if depth--; depth < 0 {
				return text, nil
			}
			if e.Name.Local != "default" {
				text = ""
			}
		}
	}
}

// element reads the data of a node or an edge up to its end.
func (g *graphmlRows) element(start *xml.StartElement) (*elementsIn, error) {
	var props []gvalue.VertexProperty
	label, bad := "", error(nil)
	id := any(attr(start, "id"))
	ends := map[string]any{"source": attr(start, "source"), "target": attr(start, "target")}
	if _, ok := g.keys[""]; ok || id == "" {
		id = nil
	}
	seen := map[string]bool{}
	add := func(key, data string) {
		seen[key] = true
		k, ok := g.keys[key]
		if !ok {
			k = graphmlKey{name: key, typ: "string"}
		}
		if key == labelV || key == labelE {
			label = data
			return
		}
		vals, err := graphmlValues(k.typ, data)
		if err != nil {
			bad = fmt.Errorf("%s: %.100q is no %s", k.name, data, k.typ)
		}
		switch k.name {
		case idsKey:
			id = vals[0]
		case idsKey + ".source", idsKey + ".target":
			ends[strings.TrimPrefix(k.name, idsKey+".")] = vals[0]
		default:
			for _, v := range vals {
				p, ok := v.(gvalue.VertexProperty)
				if !ok {
					p.Value = v
				}
				p.Label = k.name
				props = append(props, p)
			}
		}
	}
	depth, key, data := 0, "", ""
	for {
		t, err := g.x.Token()
		if err != nil {
			return nil, err
		}
		switch e := t.(type) {
		case xml.Directive:
			return nil, errors.New("the file has a document type, which can define entities: refused")
		case xml.StartElement:
			if depth++; depth > maxXMLDepth {
				return nil, fmt.Errorf("elements are nested more than %d deep", maxXMLDepth)
			}
			switch e.Name.Local {
			case "data":
				key, data = attr(&e, "key"), ""
			case "graph": // its nodes would be lost
				return nil, fmt.Errorf("the %s %q has a graph inside, which isn't read", start.Name.Local,
					attr(start, "id"))
			}
		case xml.CharData:
			if data += string(e); len(data) > transfer.MaxRow {
				return nil, fmt.Errorf("a text has more than %d MiB", transfer.MaxRow>>20)
			}
		case xml.EndElement:
			if depth > 0 {
				if depth--; e.Name.Local == "data" {
					add(key, data)
				}
				continue
			}
			for _, key := range g.defaults {
				if k := g.keys[key]; !seen[key] && (k.of == start.Name.Local || k.of == "all" || k.of == "") {
					add(key, k.fallback)
				}
			}
			if bad != nil {
				return nil, &transfer.Bad{Reason: bad.Error(), Text: []byte(attr(start, "id"))}
			}
			if label == "" {
				label, props = otherLabel(start, props)
			}
			return graphmlElement(start, id, label, ends, props), nil
		}
	}
}

// otherLabel returns the label of an element that has none of TinkerPop's, and its other properties.
func otherLabel(e *xml.StartElement, props []gvalue.VertexProperty) (string, []gvalue.VertexProperty) {
	for i, p := range props {
		if s, ok := p.Value.(string); ok && p.Label == "label" && s != "" {
			return s, slices.Delete(props, i, i+1)
		}
	}
	if e.Name.Local == "edge" {
		return attr(e, "label"), props
	}
	return strings.TrimPrefix(attr(e, "labels"), ":"), props
}

func graphmlElement(start *xml.StartElement, id any, label string, ends map[string]any,
	props []gvalue.VertexProperty) *elementsIn {
	if start.Name.Local == "node" {
		if label == "" {
			label = graph.DefaultLabel
		}
		return &elementsIn{vertices: []*gvalue.Vertex{{ID: id, Label: label, Properties: props}}}
	}
	e := &gvalue.Edge{ID: id, Label: label, OutV: ends["source"], InV: ends["target"]}
	for _, p := range props {
		e.Properties = append(e.Properties, gvalue.Property{Key: p.Label, Value: p.Value})
	}
	return &elementsIn{out: []*gvalue.Edge{e}}
}

// graphmlValues reads the values in a text of a type. The type json has several: [value, ..], or for a vertex's
// property with meta-properties {"_value", "_meta"}.
func graphmlValues(typ, text string) ([]any, error) {
	one := func(v any, err error) ([]any, error) { return []any{v}, err }
	switch typ {
	case "boolean":
		return one(strconv.ParseBool(text))
	case "int":
		i, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		return []any{int32(i)}, err
	case "long":
		return one(strconv.ParseInt(strings.TrimSpace(text), 10, 64))
	case "float", "double":
		return one(strconv.ParseFloat(strings.TrimSpace(text), 64))
	case "json":
		v, err := doc.ValueFromExtJSON([]byte(text))
		if err != nil || v.Kind() != value.Array {
			return []any{nil}, errors.Join(err, onlyIf(v.Kind() != value.Array, "an array is expected"))
		}
		out := []any{}
		graph.EachValue(v, func(_ int, val, _, meta value.Value) bool {
			p := gvalue.VertexProperty{Value: graph.FromValue(val)}
			for it := meta.Iter(); it.Next(); {
				p.Properties = append(p.Properties, gvalue.Property{Key: string(it.Key()),
					Value: graph.FromValue(it.Value())})
			}
			out = append(out, p)
			return true
		})
		if len(out) == 0 {
			return []any{nil}, errors.New("an empty list")
		}
		return out, nil
	}
	return []any{text}, nil
}

func onlyIf(is bool, text string) error {
	if is {
		return errors.New(text)
	}
	return nil
}

// graphmlWriter keeps the elements in a temporary file until all keys are known.
type graphmlWriter struct {
	*file
	spool *spool
	keys  [2]map[string]*kinds // of vertices and of edges
	names [2][]string
}

func writeGraphML(o *Output) (transfer.Writer, error) {
	f, err := o.create(o.Path)
	if err != nil {
		return nil, err
	}
	s, err := newSpool(o.Path)
	return &graphmlWriter{file: f, spool: s, keys: [2]map[string]*kinds{{}, {}}}, err
}

// fields calls f with the properties of a stored element, and with its ids that aren't texts. typ is "json" for what
// only JSON holds.
func fields(d doc.Doc, f func(name, typ, text string)) {
	if isEdge(d) {
		e := view.NewEdge(d)
		for name, id := range map[string]any{idsKey: e.ID, idsKey + ".source": e.OutV, idsKey + ".target": e.InV} {
			idField(name, id, f)
		}
		for _, p := range graph.EdgeOf(e).LoadEdgeProperties() {
			typ, text := "json", ""
			v := doc.Get(d, graph.StoredKey(p.Key))
			if typ = graphmlType(v); typ == "json" {
				text = "[" + string(doc.AppendExtJSON(nil, v, false)) + "]"
			} else {
				text = plainText(v)
			}
			f(p.Key, typ, text)
		}
		return
	}
	v := view.NewVertex(d)
	idField(idsKey, v.ID, f)
	for it := value.ObjectOf(d).Iter(); it.Next(); {
		name, ok := doc.NoSQL.Shown(it.Key())
		if !ok || graph.IsReserved(string(it.Key())) {
			continue
		}
		var vals, metas []value.Value
		graph.EachValue(it.Value(), func(_ int, val, _, meta value.Value) bool {
			vals, metas = append(vals, val), append(metas, meta)
			return true
		})
		if len(vals) == 1 && !metas[0].IsDefined() && graphmlType(vals[0]) != "json" {
			f(string(name), graphmlType(vals[0]), plainText(vals[0]))
			continue
		}
		b := []byte{'['}
		for i := range vals {
			if i > 0 {
				b = append(b, ',')
			}
			b = doc.AppendExtJSON(append(b, `{"_value":`...), vals[i], false)
			if metas[i].IsDefined() {
				b = doc.AppendExtJSON(append(b, `,"_meta":`...), metas[i], false)
			}
			b = append(b, '}')
		}
		f(string(name), "json", string(append(b, ']')))
	}
}

func idField(name string, id any, f func(name, typ, text string)) {
	switch x := id.(type) {
	case int32:
		f(name, "int", strconv.Itoa(int(x)))
	case int64:
		f(name, "long", strconv.FormatInt(x, 10))
	}
}

// graphmlType returns the type that holds a value, "json" if none does. XML has no control characters, and drops
// carriage returns.
func graphmlType(v value.Value) string {
	switch v.Kind() {
	case value.Bool:
		return "boolean"
	case value.Int32:
		return "int"
	case value.Int64:
		return "long"
	case value.Double:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return "double"
		}
	case value.String:
		if strings.IndexFunc(v.Str(), func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r >= 0xfffe ||
				r == '\uFFFD'
		}) < 0 {
			return "string"
		}
	}
	return "json"
}

func plainText(v value.Value) string {
	switch v.Kind() {
	case value.String:
		return v.Str()
	case value.Double:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return string(doc.AppendExtJSON(nil, v, true))
}

func kindOf(d doc.Doc) int {
	if isEdge(d) {
		return 1
	}
	return 0
}

func (g *graphmlWriter) Add(r *transfer.Row) error {
	k := kindOf(r.Doc)
	fields(r.Doc, func(name, typ, _ string) {
		if g.keys[k][name] == nil {
			g.keys[k][name] = &kinds{}
			g.names[k] = append(g.names[k], name)
		}
		g.keys[k][name].add(typ)
	})
	return g.spool.add(r.Doc)
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

func (g *graphmlWriter) Close() error {
	w := func(format string, args ...any) { _, _ = fmt.Fprintf(g.b, format, args...) }
	w("%s<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n", xml.Header)
	w("<key id=%q for=\"node\" attr.name=%q attr.type=\"string\"/>\n", labelV, labelV)
	w("<key id=%q for=\"edge\" attr.name=%q attr.type=\"string\"/>\n", labelE, labelE)
	for k, of := range []string{"node", "edge"} {
		for i, name := range g.names[k] {
			for _, typ := range g.keys[k][name].types {
				more := ""
				if typ == "json" {
					typ, more = "string", ` orrery.type="json"`
				}
				w("<key id=\"%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\"%s/>\n",
					keyID(of, i, g.keys[k][name], typ, more != ""), of, escaped(name), typ, more)
			}
		}
	}
	w("<graph edgedefault=\"directed\">\n")
	err := g.spool.each(func(d doc.Doc) error {
		k := kindOf(d)
		of, label := "node", ""
		if k == 1 {
			e := view.NewEdge(d)
			of, label = "edge", e.Label
			w("<edge id=\"%s\" source=\"%s\" target=\"%s\"><data key=%q>%s</data>", escaped(gvalue.Text(e.ID)),
				escaped(gvalue.Text(e.OutV)), escaped(gvalue.Text(e.InV)), labelE, escaped(label))
		} else {
			v := view.NewVertex(d)
			w("<node id=\"%s\"><data key=%q>%s</data>", escaped(gvalue.Text(v.ID)), labelV, escaped(v.Label))
		}
		fields(d, func(name, typ, text string) {
			json := typ == "json"
			if json {
				typ = "string"
			}
			w("<data key=\"%s\">%s</data>", keyID(of, slices.Index(g.names[k], name), g.keys[k][name], typ, json),
				escaped(text))
		})
		w("</%s>\n", of)
		return nil
	})
	w("</graph></graphml>\n")
	return g.file.end(err)
}

// keyID names a key: a property with several types has several.
func keyID(of string, i int, _ *kinds, typ string, json bool) string {
	if json {
		typ = "json"
	}
	return fmt.Sprintf("%c%d.%s", of[0], i, typ)
}
