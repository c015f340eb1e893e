package formats

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/tableapi/edm"
)

// graphcsv is the CSV of graph bulk loaders: a file of vertices, one of edges, or a folder of both.
//
//	~id,~label,name:String,age:Int,langs:String[]        ~id,~from,~to,~label,weight:Double
//	v1,person,Ann,29,go;java                             e1,v1,v2,knows,0.5
//
// A type may be followed by (single), (set) or (list). Several values are separated by semicolons, and a backslash
// keeps one that belongs to a value. The type Json is Orrery's: canonical Extended JSON of what the others don't hold.
// Integer ids have the column ~id:Int or ~id:Long; for edges also ~from and ~to.
var graphcsv = &Format{Name: "graphcsv", About: "the CSV of graph bulk loaders (~id, ~label, ~from, ~to)",
	Suffixes: []string{".csv"}, Door: Graph, Typed: true,
	Is: func(_ string, head []byte) bool {
		line, _, _ := bytes.Cut(bytes.TrimPrefix(head, transfer.BOM), []byte("\n"))
		return bytes.Contains(line, []byte("~id"))
	},
	Whole: true,
	Read:  func(f *File) (transfer.Reader, error) { return newPasses(f, openGraphCSV) },
	Write: writeGraphCSV}

type graphcsvRows struct {
	f     *File
	files []string
	t     *table
	cols  []graphColumn
}

type graphColumn struct {
	name, typ string
	array     bool
}

func openGraphCSV(f *File) (rows, error) {
	g := &graphcsvRows{f: f, files: []string{f.Name}}
	if f.In.Dir() {
		g.files = nil
		for _, name := range f.In.Files() {
			if strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".csv") {
				g.files = append(g.files, name)
			}
		}
	}
	return g, nil
}

func (g *graphcsvRows) Close() error {
	if g.t != nil {
		return g.t.f.Close()
	}
	return nil
}

func (g *graphcsvRows) next() (*elementsIn, int64, error) {
	for {
		if g.t == nil {
			if len(g.files) == 0 {
				return nil, 0, io.EOF
			}
			var err error
			if g.t, err = openTable(g.f, g.files[0]); err != nil {
				return nil, 0, err
			}
			g.files = g.files[1:]
			g.cols = nil
			for _, cell := range g.t.header {
				c, err := graphColumnOf(cell)
				if err != nil { // no row of the file can be read
					err = errors.Join(err, g.t.f.Close())
					g.t, g.files = nil, nil
					return nil, 0, err
				}
				g.cols = append(g.cols, c)
			}
		}
		rec, line, err := g.t.next()
		if err == io.EOF {
			err = g.t.f.Close()
			if g.t = nil; err == nil {
				continue
			}
		}
		if err != nil {
			return nil, line, err
		}
		els, err := g.row(rec)
		if err != nil {
			return nil, line, &transfer.Bad{Line: line, Reason: err.Error(), Text: joined(rec)}
		}
		return els, line, nil
	}
}

// graphTypes read a value of a type, in lower case.
var graphTypes = map[string]func(string) (any, error){
	"string": func(s string) (any, error) { return s, nil },
	"bool":   func(s string) (any, error) { return strconv.ParseBool(strings.ToLower(s)) },
	"byte":   intOf(8), "short": intOf(16), "int": intOf(32),
	"long":   func(s string) (any, error) { return strconv.ParseInt(s, 10, 64) },
	"double": func(s string) (any, error) { return strconv.ParseFloat(s, 64) },
	"date": func(s string) (any, error) {
		v, err := edm.ParseDateTime(s)
		return graph.FromValue(v), err
	},
}

func intOf(bits int) func(string) (any, error) {
	return func(s string) (any, error) {
		i, err := strconv.ParseInt(s, 10, bits)
		return int32(i), err
	}
}

func init() {
	for name, same := range map[string]string{"boolean": "bool", "float": "double", "datetime": "date",
		"integer": "int"} {
		graphTypes[name] = graphTypes[same]
	}
}

func graphColumnOf(cell string) (graphColumn, error) {
	c := graphColumn{name: cell, typ: "string"}
	if i := strings.LastIndexByte(cell, ':'); i >= 0 {
		typ := strings.ToLower(cell[i+1:])
		typ, _, _ = strings.Cut(typ, "(")
		bare := strings.TrimSuffix(typ, "[]")
		if _, ok := graphTypes[bare]; !ok && bare != "json" {
			return c, fmt.Errorf("the column %q has an unknown type", cell)
		}
		c = graphColumn{cell[:i], bare, bare != typ}
	}
	if strings.IndexByte(c.name, 0) >= 0 {
		return c, fmt.Errorf("the column %q has a zero byte", cell)
	}
	return c, nil
}

func (g *graphcsvRows) row(rec []string) (*elementsIn, error) {
	special := map[string]any{}
	var props []gvalue.VertexProperty
	for i, text := range rec {
		c := &g.cols[i]
		if text == "" {
			continue
		}
		vals, err := c.values(text)
		if err != nil {
			return nil, fmt.Errorf("column %q: %.100q is no %s", g.t.header[i], text, c.typ)
		}
		if strings.HasPrefix(c.name, "~") {
			special[c.name] = vals[0]
			continue
		}
		for _, v := range vals {
			p, ok := v.(gvalue.VertexProperty)
			if !ok {
				p.Value = v
			}
			p.Label = c.name
			props = append(props, p)
		}
	}
	label := text(special["~label"])
	if special["~from"] == nil && special["~to"] == nil {
		if special["~id"] == nil {
			return nil, errors.New("the vertex has no ~id")
		}
		if label == "" {
			label = graph.DefaultLabel
		}
		return &elementsIn{vertices: []*gvalue.Vertex{{ID: special["~id"], Label: label, Properties: props}}}, nil
	}
	e := &gvalue.Edge{ID: special["~id"], Label: label, OutV: special["~from"], InV: special["~to"]}
	for _, p := range props {
		e.Properties = append(e.Properties, gvalue.Property{Key: p.Label, Value: p.Value})
	}
	return &elementsIn{out: []*gvalue.Edge{e}}, nil
}

// values reads a cell.
func (c *graphColumn) values(text string) ([]any, error) {
	if c.typ == "json" {
		return graphmlValues("json", text)
	}
	parts := []string{text}
	if c.array {
		parts = split(text)
	}
	var out []any
	for _, p := range parts {
		v, err := graphTypes[c.typ](p)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// split splits at semicolons that no backslash precedes.
func split(text string) []string {
	var out []string
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == ';':
			b.WriteByte(';')
			i++
		case text[i] == ';':
			out = append(out, b.String())
			b.Reset()
		default:
			b.WriteByte(text[i])
		}
	}
	return append(out, b.String())
}

// graphcsvWriter writes a folder with vertices.csv and edges.csv.
type graphcsvWriter struct {
	o     *Output
	dir   string
	spool [2]*spool
	keys  [2]map[string]*kinds
	names [2][]string
}

func writeGraphCSV(o *Output) (transfer.Writer, error) {
	dir, err := o.directory()
	if err != nil {
		return nil, err
	}
	g := &graphcsvWriter{o: o, dir: dir, keys: [2]map[string]*kinds{{}, {}}}
	for i := range g.spool {
		if g.spool[i], err = newSpool(filepath.Join(dir, "x")); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// csvNames are the names of the loaders' types, by those of GraphML.
var csvNames = map[string]string{"boolean": "Bool", "int": "Int", "long": "Long", "double": "Double",
	"string": "String",
	"json":   "Json"}

// cellOf changes a field to what a cell holds: a cell without text is an absent value.
func cellOf(typ, text string) (string, string) {
	if typ == "string" && text == "" {
		return "json", `[""]`
	}
	return typ, text
}

func (g *graphcsvWriter) Add(r *transfer.Row) (err error) {
	k := kindOf(r.Doc)
	fields(r.Doc, func(name, typ, text string) {
		if typ, _ = cellOf(typ, text); strings.HasPrefix(name, "~") {
			err = fmt.Errorf("the property %s can't be written in this format, whose own columns begin with ~", name)
		}
		if g.keys[k][name] == nil {
			g.keys[k][name] = &kinds{}
			g.names[k] = append(g.names[k], name)
		}
		g.keys[k][name].add(typ)
	})
	return errors.Join(err, g.spool[k].add(r.Doc))
}

func (g *graphcsvWriter) Close() (err error) {
	for k, name := range []string{"vertices.csv", "edges.csv"} {
		err = errors.Join(err, g.write(k, filepath.Join(g.dir, name)))
	}
	return err
}

// write writes one of the files. A property has a column for each of its types.
func (g *graphcsvWriter) write(k int, path string) error {
	f, err := g.o.create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f.b)
	head := []string{"~id", "~label"}
	if k == 1 {
		head = []string{"~id", "~from", "~to", "~label"}
	}
	at := map[string]int{}
	for _, name := range g.names[k] {
		slices.Sort(g.keys[k][name].types)
		for _, typ := range g.keys[k][name].types {
			shown := name
			switch name {
			case idsKey:
				shown = "~id"
			case idsKey + ".source":
				shown = "~from"
			case idsKey + ".target":
				shown = "~to"
			}
			at[name+":"+typ] = len(head)
			head = append(head, shown+":"+csvNames[typ])
		}
	}
	_ = w.Write(head)
	rec := make([]string, len(head))
	err = g.spool[k].each(func(d doc.Doc) error {
		clear(rec)
		if k == 1 {
			e := view.NewEdge(d)
			rec[0], rec[1], rec[2], rec[3] = gvalue.Text(e.ID), gvalue.Text(e.OutV), gvalue.Text(e.InV), e.Label
		} else {
			v := view.NewVertex(d)
			rec[0], rec[1] = gvalue.Text(v.ID), v.Label
		}
		fields(d, func(name, typ, text string) {
			typ, text = cellOf(typ, text)
			rec[at[name+":"+typ]] = text
		})
		return w.Write(rec)
	})
	w.Flush()
	return f.end(errors.Join(err, w.Error()))
}
