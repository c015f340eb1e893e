package doc

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
)

// AppendJSON appends v as plain JSON (value.PlainJSON). Dates are ISO 8601 text in UTC with milliseconds, or with seven
// digits of fraction when the stored date has units of 100 ns. UUIDs are text, binaries base64. ObjectId, decimal,
// timestamp, regex and all other kinds that JSON lacks are canonical Extended JSON. A whole double is written as 1.0,
// so it reads back as a double. Undefined is written as null.
func AppendJSON(dst []byte, v value.Value) []byte { return value.AppendText(dst, v, value.PlainJSON) }

// AppendJSONFields appends the shown fields of d as `"a":1,"b":2`, without braces and with their shown names. It
// appends nothing if d has no shown fields. With NoSQL names the identity is always a string: an identity of another
// kind, which only Mongo can write, is shown as its canonical Extended JSON text.
func AppendJSONFields(dst []byte, d Doc, names Names) []byte {
	return AppendFields(dst, d, names, value.PlainJSON)
}

// AppendFields is AppendJSONFields in a given style. Containers with the property extendedJson use value.CanonicalJSON
// or value.RelaxedJSON.
func AppendFields(dst []byte, d Doc, names Names, s value.Style) []byte {
	if len(d) <= 5 {
		return dst
	}
	comma := false
	for r := d[4 : len(d)-1]; ; {
		k, n, ok := bson.Element(r)
		if !ok {
			return dst
		}
		t, name, raw := r[0], r[1:k], r[k+1:n]
		r = r[n:]
		shown := name
		if names != Stored {
			if shown, ok = names.Shown(name); !ok {
				continue
			}
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = json.AppendName(dst, shown)
		if t != bson.TypeString && names != Stored && string(name) == "_id" {
			dst = appendIdentity(dst, t, raw)
		} else {
			dst = value.AppendRaw(dst, t, raw, s)
		}
	}
}

// appendIdentity appends an `_id` that isn't a string.
func appendIdentity(dst []byte, t byte, raw []byte) []byte {
	var buf [64]byte
	return json.AppendText(dst, value.AppendRaw(buf[:0], t, raw, value.CanonicalJSON))
}

// AppendExtJSON appends v as MongoDB Extended JSON v2, relaxed or canonical. FromExtJSON reads the canonical text back
// to the same bytes.
func AppendExtJSON(dst []byte, v value.Value, relaxed bool) []byte {
	if relaxed {
		return value.AppendText(dst, v, value.RelaxedJSON)
	}
	return value.AppendText(dst, v, value.CanonicalJSON)
}
