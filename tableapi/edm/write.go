package edm

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
)

// Level is the amount of metadata in a reply.
type Level uint8

// The metadata levels. NoMetadata loses types: Int64, DateTime, Guid and Binary look like strings.
const (
	NoMetadata Level = iota
	Minimal
	Full
)

// ContentType returns the media type of a reply.
func (l Level) ContentType() string {
	return [...]string{
		"application/json;odata=nometadata;streaming=true;charset=utf-8",
		"application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
		"application/json;odata=fullmetadata;streaming=true;charset=utf-8",
	}[l]
}

// Row is one stored entity to be written.
type Row struct {
	Doc          []byte // BSON
	PartitionKey []byte // text
	RowKey       []byte
	Ticks        int64 // Timestamp: 100 ns since 1970
}

// Format says how rows are written as JSON. It is made once for each request.
type Format struct {
	Level   Level
	Select  []string // nil: all properties
	Context string   // odata.metadata, "" in the rows of a list
	Base    string   // absolute URL of the account, for Full
	Account string   // for Full
	Table   string   // for Full
	Native  bool     // a container of the Table API: "$pk" is hidden, and a field "id" is an ordinary property
}

// ETag marks.
const (
	etagOpen  = `W/"datetime'`
	etagClose = `'"`
)

// AppendETag appends the ETag of an instant: W/"datetime'2024-03-04T05%3A06%3A07.1234567Z'".
func AppendETag(dst []byte, ticks int64) []byte {
	dst = append(dst, etagOpen...)
	dst = appendTicks(dst, ticks, "%3A")
	return append(dst, etagClose...)
}

// Append appends one entity as a JSON object: system properties, then the properties in stored order, each with its
// annotation if the level requires one.
func (f *Format) Append(dst []byte, r *Row) []byte {
	dst = append(dst, '{')
	open := len(dst)
	dst = f.metadata(dst, r)
	dst = f.system(dst, r)
	want := f.wanted()
	for it := doc.Value(r.Doc).Iter(); it.Next(); {
		name, ok := f.shown(it.Key())
		if !ok {
			continue
		}
		if f.Select != nil {
			if want == 0 {
				break
			}
			if !selected(f.Select, name) {
				continue
			}
			want--
		}
		dst = f.property(dst, name, it.Value())
	}
	if n := len(dst); n > open { // every member ends with a comma
		dst = dst[:n-1]
	}
	return append(dst, '}')
}

// shown returns the name of the property that is stored in a field. ok is false for fields that are shown elsewhere or
// not at all.
func (f *Format) shown(key []byte) (name []byte, ok bool) {
	if len(key) == 0 {
		return nil, false
	}
	switch key[0] {
	case '$':
		if f.Native && string(key) == PartitionField {
			return nil, false
		}
	case 'i':
		if f.Native && string(key) == "id" {
			return key, true
		}
	case 'P', 'R', 'T':
		if s := string(key); s == PartitionKey || s == RowKey || s == Timestamp {
			return nil, false
		}
	case '_':
		if string(key) == "_id" {
			return nil, false
		}
	}
	name, ok = doc.NoSQL.Shown(key)
	return name, ok && !bytes.Contains(name, []byte("odata."))
}

// wanted returns the number of properties of $select that the document can contain, so that Append can stop after the
// last one.
func (f *Format) wanted() int {
	n := 0
	for _, s := range f.Select {
		if s != PartitionKey && s != RowKey && s != Timestamp {
			n++
		}
	}
	return n
}

func selected(names []string, name []byte) bool {
	for _, s := range names {
		if s == string(name) {
			return true
		}
	}
	return false
}

func (f *Format) wants(name string) bool {
	return f.Select == nil || selected(f.Select, []byte(name))
}

// system appends PartitionKey, RowKey and Timestamp.
func (f *Format) system(dst []byte, r *Row) []byte {
	if f.wants(PartitionKey) {
		dst = append(json.AppendText(append(dst, `"PartitionKey":`...), r.PartitionKey), ',')
	}
	if f.wants(RowKey) {
		dst = append(json.AppendText(append(dst, `"RowKey":`...), r.RowKey), ',')
	}
	if f.wants(Timestamp) {
		if f.Level == Full {
			dst = append(dst, `"Timestamp@odata.type":"Edm.DateTime",`...)
		}
		dst = append(appendTicks(append(dst, `"Timestamp":"`...), r.Ticks, ":"), `",`...)
	}
	return dst
}

// metadata appends the members whose names begin with "odata.".
func (f *Format) metadata(dst []byte, r *Row) []byte {
	if f.Level == NoMetadata {
		return dst
	}
	if f.Context != "" {
		dst = append(json.AppendString(append(dst, `"odata.metadata":`...), f.Context), ',')
	}
	var link []byte
	if f.Level == Full {
		dst = append(json.AppendString(append(dst, `"odata.type":`...), f.Account+"."+f.Table), ',')
		link = AppendLink(nil, f.Table, r.PartitionKey, r.RowKey)
		dst = append(json.AppendText(append(dst, `"odata.id":`...), append([]byte(f.Base+"/"), link...)), ',')
	}
	dst = append(dst, `"odata.etag":"W/\"datetime'`...)
	dst = append(appendTicks(dst, r.Ticks, "%3A"), `'\"",`...)
	if f.Level == Full {
		dst = append(json.AppendText(append(dst, `"odata.editLink":`...), link), ',')
	}
	return dst
}

// AppendLink appends an entity's address relative to the account: table(PartitionKey='p',RowKey='r'), with quotes
// doubled.
func AppendLink(dst []byte, table string, pk, rk []byte) []byte {
	dst = append(append(dst, table...), "(PartitionKey='"...)
	dst = append(appendDoubled(dst, pk), "',RowKey='"...)
	return append(appendDoubled(dst, rk), "')"...)
}

func appendDoubled(dst, key []byte) []byte {
	for _, c := range key {
		if c == '\'' {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return dst
}

// property appends one property with its annotation. Null and undefined are omitted.
func (f *Format) property(dst, name []byte, v value.Value) []byte {
	t := typeOf(v)
	if t == None {
		return dst
	}
	if f.Level != NoMetadata && annotated(t, v) {
		dst = json.AppendText(dst, name)
		dst = append(dst[:len(dst)-1], `@odata.type":"`...)
		dst = append(append(dst, t.String()...), `",`...)
	}
	dst = append(json.AppendText(dst, name), ':')
	return append(appendJSON(dst, t, v), ',')
}

// annotated reports whether a value needs an annotation, because its type doesn't follow from the JSON value.
func annotated(t Type, v value.Value) bool {
	switch t {
	case Binary, DateTime, GUID, Int64:
		return true
	case Double:
		return math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)
	}
	return false
}

func appendJSON(dst []byte, t Type, v value.Value) []byte {
	switch t {
	case Binary:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v.Bytes()), '"')
	case Boolean:
		if v.Bool() {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case DateTime:
		return append(appendDateTime(append(dst, '"'), v), '"')
	case GUID:
		return append(value.AppendUUID(append(dst, '"'), v.Bytes()), '"')
	case Int64:
		return append(value.AppendNumber(append(dst, '"'), v), '"')
	case Int32, Double:
		return value.AppendNumber(dst, v)
	}
	return json.AppendText(dst, StringText(v))
}

// StringText returns the text of a value that is shown as Edm.String: a string unchanged, an ObjectId as hex digits, a
// decimal as digits, a date outside Edm's range in ISO form, everything else as (Extended) JSON.
func StringText(v value.Value) []byte {
	switch v.Kind() {
	case value.String, value.Symbol:
		return v.Bytes()
	case value.ObjectID:
		return hex.AppendEncode(nil, v.Bytes())
	case value.Decimal:
		return []byte(value.DecimalText(v))
	case value.Date: // ISO, except after 9999
		if b := doc.AppendJSON(nil, v); b[0] == '"' {
			return b[1 : len(b)-1]
		}
	}
	return doc.AppendJSON(nil, v)
}

// ReadOnly reports whether a stored value is shown as a string from which it can't be restored: arrays, documents and
// kinds that only MongoDB has.
func ReadOnly(v value.Value) bool {
	return typeOf(v) == String && v.Kind() != value.String
}
