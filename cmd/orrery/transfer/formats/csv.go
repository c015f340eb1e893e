package formats

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
)

// CSV with a header. A name in it may have a type, as in "age:int32"; what export writes always has one. A cell without
// text is an absent field.
//
//	id:string,age:int,tags:json
//	a,7,"[1,""x""]"               {"id":"a","age":7,"tags":[1,"x"]}
//	b,,                           {"id":"b"}
//
// A column whose values no type holds has the type json: several kinds, null, arrays, objects, empty strings, and
// strings with a carriage return, which readers of CSV drop.
var csvFormat = &Format{Name: "csv", About: "CSV with a header, whose names may have types",
	Suffixes: []string{".csv"}, Output: ".csv",
	Door: NoSQL, Read: readCSV, Write: writeCSV}

// maxColumns bounds the columns of a file.
const maxColumns = 20_000

// table reads records of CSV, of bounded length.
type table struct {
	f      io.ReadCloser
	r      *csv.Reader
	limit  *perRow
	header []string
	some   bool // rows were read
}

// perRow refuses to give more bytes than a row may have, since a quote without an end would take the rest of the file
// into memory.
type perRow struct {
	r io.Reader
	n int
}

func (p *perRow) Read(b []byte) (int, error) {
	if p.n > transfer.MaxRow {
		return 0, fmt.Errorf("a record has more than %d MiB: a quote has no end", transfer.MaxRow>>20)
	}
	n, err := p.r.Read(b)
	p.n += n
	return n, err
}

func openTable(f *File, name string) (*table, error) {
	in, err := openText(f.In, name)
	if err != nil {
		return nil, err
	}
	t := &table{f: in, limit: &perRow{r: in}}
	t.r = csv.NewReader(t.limit)
	t.r.FieldsPerRecord, t.r.ReuseRecord = -1, true
	head, err := t.r.Read()
	if err == nil && len(head) > maxColumns {
		err = fmt.Errorf("the header has more than %d columns", maxColumns)
	}
	if err == io.EOF { // an empty file has no rows, as an export of an empty container
		return t, nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.In.Shown(name), err), in.Close())
	}
	t.header = slices.Clone(head)
	if one := t.header[0]; len(t.header) == 1 && strings.ContainsAny(one, ";\t|") {
		return nil, errors.Join(fmt.Errorf("%s: the header has the one column %.100q: want commas between columns",
			f.In.Shown(name), one), in.Close())
	}
	return t, nil
}

// next returns the next record and its line.
func (t *table) next() ([]string, int64, error) {
	t.limit.n = 0
	rec, err := t.r.Read()
	if err == io.EOF && !t.some && strings.Contains(strings.Join(t.header, ""), "\r") {
		return nil, 0, errors.New("the lines end with carriage returns alone: want line feeds")
	}
	t.some = true
	var malformed *csv.ParseError
	if errors.As(err, &malformed) {
		return nil, int64(malformed.StartLine), &transfer.Bad{Line: int64(malformed.StartLine),
			Reason: malformed.Err.Error(), Text: joined(rec)}
	}
	if err != nil {
		return nil, 0, err
	}
	line, _ := t.r.FieldPos(0)
	if len(rec) != len(t.header) {
		return nil, int64(line), &transfer.Bad{Line: int64(line), Text: joined(rec),
			Reason: fmt.Sprintf("the record has %d cells, the header %d", len(rec), len(t.header))}
	}
	return rec, int64(line), nil
}

// joined returns a record as text.
func joined(rec []string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(rec)
	w.Flush()
	return bytes.TrimRight(b.Bytes(), "\n")
}

// column is a column of a file.
type column struct {
	path []string // of the field; more than one for a nested one
	typ  string   // of csvTypes; "" = as the cell looks
}

// csvTypes read a cell of a type. Every text that they don't accept is an error.
var csvTypes = map[string]func(text, door string) (value.Value, error){
	"string": func(text, _ string) (value.Value, error) { return value.StringOf(text), nil },
	"int": func(text, _ string) (value.Value, error) {
		i, err := strconv.ParseInt(text, 10, 64)
		if i == int64(int32(i)) {
			return value.Int32Of(int32(i)), err
		}
		return value.Int64Of(i), err
	},
	"int32": func(text, _ string) (value.Value, error) {
		i, err := strconv.ParseInt(text, 10, 32)
		return value.Int32Of(int32(i)), err
	},
	"int64": func(text, _ string) (value.Value, error) {
		i, err := strconv.ParseInt(text, 10, 64)
		return value.Int64Of(i), err
	},
	"double": func(text, _ string) (value.Value, error) {
		f, err := strconv.ParseFloat(text, 64)
		return value.DoubleOf(f), err
	},
	"bool": func(text, _ string) (value.Value, error) {
		b, err := strconv.ParseBool(text)
		return value.BoolOf(b), err
	},
	"date": func(text, _ string) (value.Value, error) { return edm.ParseDateTime(text) },
	"json": func(text, door string) (value.Value, error) {
		if door == Mongo {
			return doc.ValueFromExtJSON([]byte(text))
		}
		return doc.ValueFromJSON([]byte(text))
	},
}

// guessed returns the value of a cell without a type. Only what would be written in the same way is a number: 007 and
// 1e3 are texts.
func guessed(text string) value.Value {
	switch {
	case text == "true" || text == "false":
		return value.BoolOf(text == "true")
	case text[0] != '-' && (text[0] < '0' || text[0] > '9'):
		return value.StringOf(text)
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(i, 10) == text {
		if i == int64(int32(i)) {
			return value.Int32Of(int32(i))
		}
		return value.Int64Of(i)
	}
	whole, frac, point := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if f, err := strconv.ParseFloat(text, 64); err == nil && point && frac != "" && !math.IsInf(f, 0) &&
		(whole == "0" || whole != "" && whole[0] != '0') && !strings.ContainsAny(text, "eExXpP_") {
		return value.DoubleOf(f)
	}
	return value.StringOf(text)
}

// fieldName reads a cell of the header.
func fieldName(cell string, o *Options) (c column, err error) {
	name := cell
	if i := strings.LastIndexByte(cell, ':'); i >= 0 {
		if _, ok := csvTypes[cell[i+1:]]; ok {
			name, c.typ = cell[:i], cell[i+1:]
		}
	}
	c.path = []string{name}
	if o.Nested != "" {
		c.path = strings.Split(name, o.Nested)
	}
	for _, p := range c.path {
		if strings.IndexByte(p, 0) >= 0 {
			return c, fmt.Errorf("the header has a name with a zero byte: %q", cell)
		}
	}
	return c, nil
}

type csvReader struct {
	*table
	o       *Options
	columns []column
	b       []byte
	text    []byte
}

func readCSV(f *File) (transfer.Reader, error) {
	t, err := openTable(f, f.Name)
	if err != nil {
		return nil, err
	}
	r := &csvReader{table: t, o: f.Options}
	for _, cell := range t.header {
		c, err := fieldName(cell, f.Options)
		if err != nil {
			return nil, errors.Join(err, t.f.Close())
		}
		r.columns = append(r.columns, c)
	}
	return r, nil
}

func (c *csvReader) Close() error { return c.f.Close() }

func (c *csvReader) Next(r *transfer.Row) error {
	rec, line, err := c.next()
	if err != nil {
		return err
	}
	*r = transfer.Row{Line: line}
	at, b := bson.Begin(c.b[:0])
	var nested doc.Doc
	for i, text := range rec {
		if text == "" {
			continue
		}
		col := &c.columns[i]
		v := value.StringOf(text)
		if col.typ != "" {
			if v, err = csvTypes[col.typ](text, c.o.Door); err != nil {
				return &transfer.Bad{Line: line, Text: joined(rec), Reason: fmt.Sprintf("column %q: %.100q is no %s",
					c.header[i], text, col.typ)}
			}
		} else if c.o.Types && (c.o.Door == Mongo || col.path[0] != "id") { // an id of the other APIs is a text
			v = guessed(text)
		}
		if len(col.path) == 1 {
			b = doc.AppendElement(b, col.path[0], v)
			continue
		}
		if nested == nil {
			nested = doc.Empty()
		}
		if nested, err = doc.Set(nested, v, col.path...); err != nil {
			return &transfer.Bad{Line: line, Text: joined(rec), Reason: err.Error()}
		}
	}
	for it := doc.Value(nested).Iter(); nested != nil && it.Next(); {
		b = append(b, it.Element()...)
	}
	c.b = bson.End(b, at)
	if err := doc.Validate(c.b, 0); err != nil {
		return &transfer.Bad{Line: line, Text: joined(rec), Reason: err.Error()}
	}
	if r.Doc = c.b; c.o.Door != Mongo {
		c.text = doc.AppendJSON(c.text[:0], doc.Value(c.b))
		r.Doc, r.Text = nil, c.text
	}
	return nil
}

// csvWriter keeps the rows in a temporary file until all columns are known.
type csvWriter struct {
	*file
	o     *Output
	spool *spool
	cols  map[string]*kinds
	names []string
	room  []byte
}

// kinds are the types of a column's values.
type kinds struct{ types []string }

func (k *kinds) add(t string) {
	if !slices.Contains(k.types, t) {
		k.types = append(k.types, t)
	}
}

// typ returns the type that holds all values.
func (k *kinds) typ() string {
	if len(k.types) == 1 {
		return k.types[0]
	}
	return "json"
}

func writeCSV(o *Output) (transfer.Writer, error) {
	f, err := o.create(o.Path)
	if err != nil {
		return nil, err
	}
	s, err := newSpool(o.Path)
	return &csvWriter{file: f, o: o, spool: s, cols: map[string]*kinds{}}, err
}

// csvType returns the type of a cell that holds a value.
func csvType(v value.Value, door string) string {
	switch v.Kind() {
	case value.String:
		if s := v.Bytes(); len(s) > 0 && bytes.IndexByte(s, '\r') < 0 {
			return "string"
		}
	case value.Bool:
		return "bool"
	case value.Int32:
		if door == Mongo {
			return "int32"
		}
		return "int"
	case value.Int64:
		if door == Mongo {
			return "int64"
		}
		return "int"
	case value.Double:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return "double"
		}
	}
	return "json"
}

func (c *csvWriter) Add(r *transfer.Row) error {
	d := r.Doc
	if r.Text != nil {
		var err error
		if c.room, err = doc.FromJSON(c.room[:0], r.Text, doc.JSONOptions{}); err != nil {
			return err
		}
		d = c.room
	}
	for it := doc.Value(d).Iter(); it.Next(); {
		k := c.cols[string(it.Key())]
		if k == nil {
			if len(c.names) == maxColumns {
				return fmt.Errorf("the rows have more than %d fields: this is no data for CSV", maxColumns)
			}
			if bytes.Contains(it.Key(), []byte("\r\n")) {
				return fmt.Errorf("the field %q has a carriage return that readers of CSV drop: export json", it.Key())
			}
			k = &kinds{}
			c.cols[string(it.Key())] = k
			c.names = append(c.names, string(it.Key()))
		}
		k.add(csvType(it.Value(), c.o.Door))
	}
	return c.spool.add(d)
}

func (c *csvWriter) Close() error {
	w := csv.NewWriter(c.b)
	rec := make([]string, len(c.names))
	at := make(map[string]int, len(c.names))
	for i, name := range c.names {
		rec[i], at[name] = name+":"+c.cols[name].typ(), i
	}
	_ = w.Write(rec)
	err := c.spool.each(func(d doc.Doc) error {
		clear(rec)
		for it := doc.Value(d).Iter(); it.Next(); {
			i := at[string(it.Key())]
			rec[i] = cell(it.Value(), c.cols[c.names[i]].typ(), c.o.Door)
		}
		return w.Write(rec)
	})
	w.Flush()
	return c.file.end(errors.Join(err, w.Error()))
}

// cell returns the text of a value in a column of a type.
func cell(v value.Value, typ, door string) string {
	switch typ {
	case "string":
		return v.Str()
	case "double":
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	if door == Mongo {
		return string(doc.AppendExtJSON(nil, v, typ != "json"))
	}
	return string(doc.AppendJSON(nil, v))
}
