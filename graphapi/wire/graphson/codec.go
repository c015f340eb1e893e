package graphson

import (
	"strconv"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// Codec is one flavour of GraphSON. All flavours read requests in the same way.
type Codec struct {
	Version int  // version of replies: 1, 2 or 3; 1 is always untyped
	Untyped bool // without @type
	Strings bool // each result item is written as its text
}

var _ message.Codec = Codec{}

func (c Codec) writer(dst []byte) writer {
	return writer{b: dst, version: c.Version, typed: !c.Untyped && c.Version > 1}
}

// ReadRequest implements message.Codec. The request's id may be a string or a g:UUID, args an object or a g:Map.
func (Codec) ReadRequest(body []byte) (*message.Request, error) {
	tree, err := parseJSON(body)
	if err != nil {
		return nil, &message.FormatError{Code: message.Malformed, Msg: err.Error()}
	}
	o, ok := tree.(*object)
	if !ok {
		return nil, &message.FormatError{Code: message.Malformed, Msg: "GraphSON: a request is an object"}
	}
	c := &converter{}
	req := &message.Request{Op: c.label(o, "op"), Processor: c.label(o, "processor")}
	id, _ := o.get("requestId")
	if t, ok := id.(*object); ok {
		id, _ = t.get("@value")
	}
	s, _ := id.(string)
	var hasID bool
	if req.ID, hasID = parseUUID(s); !hasID {
		return nil, &message.FormatError{Code: message.Malformed, Msg: "GraphSON: requestId is not a UUID"}
	}
	args, _ := o.get("args")
	m, ok := c.value(args).(*gvalue.Map)
	if !ok && args != nil {
		c.fail("args is not a map")
	}
	if c.err != nil {
		return nil, &message.FormatError{ID: req.ID, HasID: true, Code: message.Malformed, Msg: c.err.Error()}
	}
	req.Args = m
	return req, nil
}

// AppendItem implements message.Codec.
func (c Codec) AppendItem(dst []byte, v any, bulk int64, o message.Options) ([]byte, error) {
	w := c.writer(dst)
	w.tokens = o.Tokens
	if c.Strings {
		v = gvalue.Text(v)
	}
	if o.Traversers {
		w.open("g:Traverser")
		w.raw(`{"bulk":`)
		w.integer("g:Int64", bulk)
		w.raw(`,"value":`)
		w.value(v)
		w.raw("}")
		w.close()
	} else {
		w.value(v)
	}
	return w.b, w.err
}

// AppendSeparator implements message.Codec.
func (Codec) AppendSeparator(dst []byte) []byte { return append(dst, ',') }

// AppendResponse implements message.Codec.
func (c Codec) AppendResponse(dst []byte, r *message.Response, items []byte, _ int) []byte {
	w := c.writer(dst)
	w.raw(`{"requestId":`)
	if r.NoID {
		w.raw("null")
	} else {
		w.string(r.ID.String())
	}
	w.raw(`,"status":{"code":`)
	w.b = strconv.AppendInt(w.b, int64(r.Code), 10)
	w.raw(`,"attributes":`)
	w.attributes(r.Attributes)
	w.raw(`,"message":`)
	w.string(r.Message)
	w.raw(`},"result":{"data":`)
	if r.NullData {
		w.raw("null")
	} else {
		w.open3("g:List")
		w.raw("[")
		w.b = append(w.b, items...)
		w.raw("]")
		w.close3()
	}
	w.raw(`,"meta":`)
	w.attributes(nil)
	w.raw("}}")
	return w.b
}

// attributes appends a map with String keys, as mapValue would.
func (w *writer) attributes(as []message.Attribute) {
	flat := w.version == 3 && w.typed
	if flat {
		w.open("g:Map")
		w.raw("[")
	} else {
		w.raw("{")
	}
	for i := range as {
		if i > 0 {
			w.raw(",")
		}
		w.string(as[i].Key)
		if flat {
			w.raw(",")
		} else {
			w.raw(":")
		}
		w.value(as[i].Value)
	}
	if flat {
		w.raw("]")
		w.close()
	} else {
		w.raw("}")
	}
}

// ReadMap reads an object as a map with String keys: the body of a request over HTTP.
func ReadMap(body []byte) (*gvalue.Map, error) {
	tree, err := parseJSON(body)
	if err != nil {
		return nil, &message.FormatError{Code: message.Malformed, Msg: err.Error()}
	}
	c := &converter{}
	m, ok := c.value(tree).(*gvalue.Map)
	if !ok && c.err == nil {
		c.fail("an object expected")
	}
	if c.err != nil {
		return nil, &message.FormatError{Code: message.Malformed, Msg: c.err.Error()}
	}
	return m, nil
}
