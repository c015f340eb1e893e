package sqlapi

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// The entities of a table are stored with native types. The service's NoSQL API shows them with the Edm type beside
// each value:
//
//	{"$pk": PartitionKey, "$id": RowKey, "id": RowKey, "Name": {"$t": 2, "$v": "Ben"}, ..}
//
// In the containers of the Table API, tableForm converts each item that is read, and tableStored each item that is
// written. A query's condition on c.Name["$v"] is translated to the index path /Name (tablePred). Values without an Edm
// type (null, arrays, documents, ObjectIds, ..) are shown in the same way as in containers with Extended JSON.

// The database of tables, and the stored field that holds PartitionKey.
const (
	tablesDatabase = "TablesDB"
	tableKeyField  = "$pk"
	tableIDField   = "$id"
	edmType        = "$t"
	edmValue       = "$v"
)

// The service's numbers of the Edm types.
const (
	edmGuid     = 0
	edmDouble   = 1
	edmString   = 2
	edmBinary   = 5
	edmBoolean  = 8
	edmDateTime = 9
	edmInt32    = 16
	edmInt64    = 18
)

// isTable reports whether ct is a container of the Table API.
func isTable(ct *core.Container) bool {
	if ct.Database() != tablesDatabase {
		return false
	}
	paths := ct.KeyPaths()
	return len(paths) == 1 && len(paths[0]) == 1 && paths[0][0] == tableKeyField
}

// isExtended reports whether the API reads and writes Extended JSON in ct.
func isExtended(ct *core.Container) bool { return ct.Spec().ExtendedJSON || isTable(ct) }

// appendShown appends an item of ct as the service shows it. In containers with Extended JSON the types are preserved
// when a client sends the item back.
func appendShown(dst []byte, ct *core.Container, it *core.Item) []byte {
	if !isTable(ct) {
		style := value.PlainJSON
		if ct.Spec().ExtendedJSON {
			style = value.RelaxedJSON
		}
		return appendItem(dst, ct.RID(), it, style)
	}
	form := *it
	form.Doc = tableForm(it.Doc)
	return appendItem(dst, ct.RID(), &form, value.RelaxedJSON)
}

// tableForm returns the service's form of a stored entity. The result has its own memory.
func tableForm(d doc.Doc) doc.Doc {
	var b doc.Builder
	b.BeginObject()
	for it := doc.Value(d).Iter(); it.Next(); {
		switch name := it.Key(); string(name) {
		case "_id":
			b.Field(tableIDField, value.StringOf(core.IdentityText(it.Value())))
			b.Element(it.Element())
		case tableKeyField, "id": // a property "id" would hide the item's id, so only the Table API shows it
			b.Element(it.Element())
		default:
			t, v := edmOf(it.Value())
			if t < 0 {
				b.Element(it.Element())
				continue
			}
			b.BeginObjectField(string(name))
			b.Field(edmType, value.Int32Of(int32(t)))
			b.Field(edmValue, v)
			b.End()
		}
	}
	b.End()
	return b.Doc()
}

// edmOf returns the number of a value's Edm type and the form of the value; -1 for kinds without one.
func edmOf(v value.Value) (int, value.Value) {
	switch v.Kind() {
	case value.Bool:
		return edmBoolean, v
	case value.Int32:
		return edmInt32, v
	case value.Int64:
		return edmInt64, padded(v.Int())
	case value.Double:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			b := doc.AppendJSON(nil, v)
			return edmDouble, value.StringBytes(b[1 : len(b)-1])
		}
		return edmDouble, v
	case value.String:
		return edmString, v
	case value.Date:
		if ticks, ok := netTicks(v); ok {
			return edmDateTime, padded(ticks)
		}
	case value.UUID:
		return edmGuid, value.StringBytes(value.AppendUUID(nil, v.Bytes()))
	case value.Binary:
		if v.Subtype() == value.SubtypeGeneric {
			return edmBinary, value.StringOf(base64.StdEncoding.EncodeToString(v.Bytes()))
		}
	}
	return -1, v
}

// padded returns a number as text of 20 characters. The texts of non-negative numbers sort in the order of the numbers.
func padded(n int64) value.Value {
	neg, u := n < 0, uint64(n)
	if neg {
		u = -u
	}
	b := []byte("00000000000000000000")
	for i := len(b) - 1; u > 0; i, u = i-1, u/10 {
		b[i] = byte('0' + u%10)
	}
	if neg {
		b[0] = '-'
	}
	return value.StringBytes(b)
}

// readPadded parses the text of padded.
func readPadded(s string) (int64, bool) {
	if len(s) != 20 || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// .NET counts 100 ns from the year 1; its last instant is the end of 9999.
const (
	netEpochMS  = 62_135_596_800_000
	netTicksEnd = 3_155_378_976_000_000_000
)

func netTicks(v value.Value) (int64, bool) {
	ms := v.DateMS()
	if ms < -netEpochMS || ms >= netTicksEnd/10_000-netEpochMS {
		return 0, false
	}
	return (ms+netEpochMS)*10_000 + int64(v.Ticks()), true
}

func dateOfTicks(n int64) (value.Value, bool) {
	if n < 0 || n >= netTicksEnd {
		return value.Value{}, false
	}
	return value.DateOf(n/10_000-netEpochMS, uint16(n%10_000)), true
}

// tableStored converts an entity from the service's form to the stored form. The result has its own memory. Properties
// that don't have the service's form are stored unchanged.
func tableStored(d doc.Doc) (doc.Doc, error) {
	var b doc.Builder
	b.BeginObject()
	for it := doc.Value(d).Iter(); it.Next(); {
		name, v := it.Key(), it.Value()
		if string(name) == tableIDField {
			if id := doc.Get(d, "_id"); v.Kind() != value.String || v.Str() != core.IdentityText(id) {
				return nil, status.New(status.BadRequest, "The property '$id' of an entity must be its id.")
			}
			continue
		}
		if native, ok := edmNative(v); ok {
			b.FieldBytes(name, native)
			continue
		}
		b.Element(it.Element())
	}
	b.End()
	return b.Doc(), nil
}

// edmNative returns the native value of {"$t": type, "$v": value}. ok is false for all other values.
func edmNative(v value.Value) (value.Value, bool) {
	if v.Kind() != value.Object || v.Len() != 2 {
		return v, false
	}
	t, x := v.Get(edmType), v.Get(edmValue)
	if !t.IsNumber() || t.Kind() == value.Decimal || !x.IsDefined() {
		return v, false
	}
	switch text := x.Kind() == value.String; t.Float() {
	case edmString:
		return x, text
	case edmBoolean:
		return x, x.Kind() == value.Bool
	case edmInt32:
		return x, x.Kind() == value.Int32
	case edmDouble:
		if text {
			switch x.Str() {
			case "NaN":
				return value.DoubleOf(math.NaN()), true
			case "Infinity":
				return value.DoubleOf(math.Inf(1)), true
			case "-Infinity":
				return value.DoubleOf(math.Inf(-1)), true
			}
		}
		return value.DoubleOf(x.Float()), x.IsNumber() && x.Kind() != value.Decimal
	case edmInt64:
		if text {
			n, ok := readPadded(x.Str())
			return value.Int64Of(n), ok
		}
	case edmDateTime:
		if text {
			if n, ok := readPadded(x.Str()); ok {
				return dateOfTicks(n)
			}
		}
	case edmGuid:
		if text {
			if b, ok := value.ParseUUID(x.Bytes()); ok {
				return value.UUIDOf(b), true
			}
		}
	case edmBinary:
		if text {
			if b, err := base64.StdEncoding.DecodeString(x.Str()); err == nil {
				return value.BinaryOf(value.SubtypeGeneric, b), true
			}
		}
	}
	return v, false
}

// tablePred translates a predicate on the service's form into a predicate on stored entities.
func tablePred(p *access.Pred) *access.Pred {
	if p == nil {
		return nil
	}
	switch p.Op {
	case access.OpAll, access.OpNone:
		return p
	case access.OpAnd, access.OpOr:
		kids := make([]*access.Pred, len(p.Kids))
		for i, k := range p.Kids {
			kids[i] = tablePred(k)
		}
		if p.Op == access.OpAnd {
			return access.And(kids...)
		}
		return access.Or(kids...)
	}
	switch segs := p.Path.Segs; {
	case len(segs) == 1 && segs[0] == tableIDField:
		return tableIDPred(p)
	case len(segs) == 2 && segs[1] == edmType:
		return access.Or(access.Exists(access.NewPath(segs[0])), p)
	case len(segs) == 2 && segs[1] == edmValue:
		// The OR with p is needed because a property without an Edm type can have a field named $v.
		return access.Or(edmPred(access.NewPath(segs[0]), p), p)
	}
	return p
}

// edmPred translates p, a predicate on a value in the service's form, into a predicate on the stored value at path.
func edmPred(path access.Path, p *access.Pred) *access.Pred {
	switch p.Op {
	case access.OpIn:
		vs := make([]value.Value, 0, len(p.Vals))
		for _, v := range p.Vals {
			vs = append(vs, v)
			for _, t := range [...]int32{edmInt64, edmDateTime, edmGuid, edmBinary, edmDouble} {
				if v.Kind() != value.String {
					break
				}
				var b doc.Builder
				b.BeginObject()
				b.Field(edmType, value.Int32Of(t))
				b.Field(edmValue, v)
				b.End()
				if n, ok := edmNative(b.Object()); ok {
					vs = append(vs, n)
				}
			}
		}
		return access.In(path, vs...)
	case access.OpRange:
		if (p.Lo == nil || p.Lo.Value.IsNumber()) && (p.Hi == nil || p.Hi.Value.IsNumber()) {
			return access.Range(path, p.Lo, p.Hi)
		}
	}
	return access.Exists(path)
}

// tableIDPred translates p, a predicate on $id (the text of the id), into a predicate on the id.
func tableIDPred(p *access.Pred) *access.Pred {
	if p.Op != access.OpIn {
		return access.All()
	}
	var vs []value.Value
	for _, v := range p.Vals {
		if v.Kind() == value.String {
			vs = append(vs, core.IdentityFromText(v.Str())...)
		}
	}
	return access.In(access.ID, vs...)
}
