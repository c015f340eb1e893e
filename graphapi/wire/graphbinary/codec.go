package graphbinary

import (
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// Codec is GraphBinary version 1. With Strings each result item is written as its text (the serializer of the Gremlin
// Console).
type Codec struct {
	Strings bool
}

var _ message.Codec = Codec{}

// ReadRequest implements message.Codec.
func (Codec) ReadRequest(body []byte) (*message.Request, error) {
	r := reader{b: body}
	req := &message.Request{}
	if v := r.byte(); r.err == nil && v != version {
		r.fail("version 0x%02x; 0x%02x is supported", v, version)
	}
	copy(req.ID[:], r.take(16))
	hasID := r.err == nil
	req.Op = r.string()
	req.Processor = r.string()
	req.Args = r.requestArgs()
	if r.err == nil && r.off != len(body) {
		r.fail("%d bytes too many", len(body)-r.off)
	}
	if r.err != nil {
		return nil, &message.FormatError{ID: req.ID, HasID: hasID, Code: message.Malformed, Msg: r.err.Error()}
	}
	return req, nil
}

// requestArgs reads the arguments, whose keys are Strings.
func (r *reader) requestArgs() *gvalue.Map {
	n := r.count(4)
	m := gvalue.NewMap(min(n, 16))
	for i := 0; i < n && r.err == nil; i++ {
		k := r.qualifiedString()
		m.Put(k, r.value())
	}
	return m
}

// AppendItem implements message.Codec.
func (c Codec) AppendItem(dst []byte, v any, bulk int64, o message.Options) ([]byte, error) {
	w := writer{b: dst, tokens: o.Tokens}
	if o.Traversers {
		w.code(tTraverser)
		w.int64(bulk)
	}
	if c.Strings {
		w.qstring(gvalue.Text(v))
	} else {
		w.value(v)
	}
	return w.b, w.err
}

// AppendSeparator implements message.Codec.
func (Codec) AppendSeparator(dst []byte) []byte { return dst }

// AppendResponse implements message.Codec.
func (Codec) AppendResponse(dst []byte, r *message.Response, items []byte, n int) []byte {
	w := writer{b: dst}
	w.byte(version)
	if r.NoID {
		w.byte(flagNull)
	} else {
		w.byte(flagValue)
		w.b = append(w.b, r.ID[:]...)
	}
	w.int32(int32(r.Code))
	w.byte(flagValue)
	w.string(r.Message)
	w.int32(int32(len(r.Attributes)))
	for _, a := range r.Attributes {
		w.qstring(a.Key)
		w.value(a.Value)
	}
	w.int32(0) // meta
	if r.NullData {
		w.null()
		return w.b
	}
	w.code(tList)
	w.int32(int32(n))
	return append(w.b, items...)
}
