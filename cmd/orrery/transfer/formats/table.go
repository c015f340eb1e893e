package formats

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/json"
)

// Exports of tables as JSON: an array of entities, the same as OData wraps it, or an entity a line. The types stand
// beside the values, as in replies of the Table API:
//
//	{"PartitionKey":"p","RowKey":"r","Count":"5","Count@odata.type":"Edm.Int64"}
var tablejson = &Format{Name: "tablejson", About: "entities of tables as JSON", Suffixes: []string{".json", ".jsonl"},
	Output: ".table.json", Door: Table,
	Is: func(_ string, head []byte) bool {
		return bytes.Contains(head, []byte(`"PartitionKey"`)) && bytes.Contains(head, []byte(`"RowKey"`)) &&
			bytes.Contains(head, []byte(`odata.`))
	},
	Read: func(f *File) (transfer.Reader, error) {
		in, err := f.openText()
		if err != nil {
			return nil, err
		}
		c := newChunks(in)
		for err == nil && len(c.rest()) < firstChunk && bytes.IndexByte(c.rest(), '\n') < 0 {
			err = c.more()
		}
		line, _, _ := bytes.Cut(bytes.TrimSpace(c.rest()), []byte("\n"))
		entity := false
		_ = json.EachMember(bytes.TrimSpace(line), func(name string, _ []byte) error {
			entity = entity || name == "PartitionKey" || name == "RowKey"
			return nil
		})
		if entity { // else the object has entities in it
			return &jsonLines{chunks: c, door: Table}, nil
		}
		return &jsonElements{elements: elements{chunks: c}, door: Table}, nil
	},
	Write: jsonArray.Write}

// tablecsv is the typed CSV of table exports: a column with the type beside that of a property.
//
//	PartitionKey,RowKey,Timestamp,Count,Count@type
//	p,r,2026-01-01T00:00:00Z,5,Edm.Int64
//
// Both cells are empty where an entity lacks the property. Without a type a cell is a text.
var tablecsv = &Format{Name: "tablecsv", About: "the typed CSV of table exports", Suffixes: []string{".csv"},
	Output: ".table.csv", Door: Table,
	Is: func(_ string, head []byte) bool {
		names, _ := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(head, transfer.BOM))).Read()
		return slices.Contains(names, "PartitionKey") && slices.Contains(names, "RowKey")
	},
	Read: func(f *File) (transfer.Reader, error) {
		t, err := openTable(f, f.Name)
		if err != nil {
			return nil, err
		}
		return &tableReader{table: t}, nil
	},
	Write: func(o *Output) (transfer.Writer, error) {
		f, err := o.create(o.Path)
		if err != nil {
			return nil, err
		}
		s, err := newSpool(o.Path)
		return &tableWriter{file: f, spool: s, seen: map[string]bool{}}, err
	}}

// typeSuffixes end the names of columns of types, and of members of types.
const (
	typeColumn = "@type"
	typeMember = "@odata.type"
)

type tableReader struct {
	*table
	text []byte
}

func (t *tableReader) Close() error { return t.f.Close() }

func (t *tableReader) Next(r *transfer.Row) error {
	rec, line, err := t.next()
	if err != nil {
		return err
	}
	types := map[string]string{}
	for i, name := range t.header {
		if of, ok := strings.CutSuffix(name, typeColumn); ok && rec[i] != "" {
			types[of] = "Edm." + strings.TrimPrefix(rec[i], "Edm.")
		}
	}
	out := append(t.text[:0], '{')
	for i, name := range t.header {
		typ := types[name]
		if strings.HasSuffix(name, typeColumn) || name == "Timestamp" || name == "" {
			continue
		}
		isKey := name == "PartitionKey" || name == "RowKey"
		if rec[i] == "" && typ == "" && !isKey {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if typ != "" && !isKey {
			out = append(json.AppendString(append(json.AppendString(out, name+typeMember), ':'), typ), ',')
		}
		out = append(json.AppendString(out, name), ':')
		if out, err = appendTyped(out, typ, rec[i]); err != nil {
			return &transfer.Bad{Line: line, Text: joined(rec), Reason: fmt.Sprintf("column %q: %.100q is no %s", name,
				rec[i], typ)}
		}
	}
	t.text = append(out, '}')
	*r = transfer.Row{Line: line, Text: t.text}
	return nil
}

// appendTyped appends the JSON of a cell with an Edm type.
func appendTyped(dst []byte, typ, text string) ([]byte, error) {
	var err error
	switch typ {
	case "Edm.Boolean":
		var b bool
		b, err = strconv.ParseBool(strings.ToLower(text))
		return strconv.AppendBool(dst, b), err
	case "Edm.Int32":
		var i int64
		i, err = strconv.ParseInt(text, 10, 32)
		return strconv.AppendInt(dst, i, 10), err
	case "Edm.Double":
		if _, end, ok := json.ScanNumber([]byte(text), 0); ok && end == len(text) {
			return append(dst, text...), nil
		}
	case "", "Edm.String", "Edm.Int64", "Edm.DateTime", "Edm.Guid", "Edm.Binary":
	default:
		err = errors.New("unknown type")
	}
	return json.AppendString(dst, text), err
}

// tableWriter keeps the entities in a temporary file until all columns are known.
type tableWriter struct {
	*file
	spool *spool
	seen  map[string]bool
	names []string
}

func (t *tableWriter) Add(r *transfer.Row) error {
	err := json.EachMember(r.Text, func(name string, raw []byte) error {
		if bytes.Contains(raw, []byte(`\r`)) {
			return fmt.Errorf("%s of an entity has a carriage return, which readers of CSV drop: export tablejson",
				name)
		}
		if strings.HasSuffix(name, typeMember) || name == "PartitionKey" || name == "RowKey" || t.seen[name] {
			return nil
		}
		if len(t.names) == maxColumns {
			return fmt.Errorf("the entities have more than %d properties", maxColumns)
		}
		t.seen[name] = true
		t.names = append(t.names, name)
		return nil
	})
	if err != nil {
		return err
	}
	at, b := bson.Begin(nil)
	return t.spool.add(bson.End(bson.AppendString(b, "", string(r.Text)), at))
}

func (t *tableWriter) Close() error {
	w := csv.NewWriter(t.b)
	slices.Sort(t.names)
	head := []string{"PartitionKey", "RowKey"}
	at := map[string]int{"PartitionKey": 0, "RowKey": 1}
	for _, name := range t.names {
		at[name] = len(head)
		head = append(head, name, name+typeColumn)
	}
	_ = w.Write(head)
	rec := make([]string, len(head))
	err := t.spool.each(func(d doc.Doc) error {
		clear(rec)
		err := json.EachMember(doc.Get(d, "").Bytes(), func(name string, raw []byte) error {
			if of, ok := strings.CutSuffix(name, typeMember); ok {
				if typ, ok := json.String(raw); ok && at[of] > 1 {
					rec[at[of]+1] = typ
				}
				return nil
			}
			i := at[name]
			if s, ok := json.String(raw); ok {
				rec[i] = s
			} else {
				rec[i] = string(raw)
			}
			if i > 1 && rec[i+1] == "" {
				rec[i+1] = edmType(raw)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return w.Write(rec)
	})
	w.Flush()
	return t.file.end(errors.Join(err, w.Error()))
}

// edmType returns the type of a value without one.
func edmType(raw []byte) string {
	switch {
	case raw[0] == '"':
		return "Edm.String"
	case raw[0] == 't' || raw[0] == 'f':
		return "Edm.Boolean"
	case bytes.ContainsAny(raw, ".eE"):
		return "Edm.Double"
	}
	return "Edm.Int32"
}
