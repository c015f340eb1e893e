// Package message holds the requests and responses of the Gremlin Server protocol as the two serializers (graphbinary,
// graphson) read and write them.
package message

import (
	"time"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Status codes of the protocol.
const (
	Success             = 200
	NoContent           = 204
	PartialContent      = 206
	Unauthorized        = 401
	Forbidden           = 403
	Authenticate        = 407
	TooManyRequests     = 429
	SerializationError  = 497 // of a request
	Malformed           = 498
	InvalidArguments    = 499
	ServerError         = 500
	FailStep            = 595
	Temporary           = 596
	Evaluation          = 597
	Timeout             = 598
	ResultSerialization = 599
	MaxValuesPerRequest = 1 << 20 // values that one request may hold, over all its levels
	MaxDepth            = 250     // levels of nesting in a request or a result
)

// Request is one request of a client on its whole way: a codec reads what the client wrote, the door reads of the
// arguments what is to be evaluated and how, and the evaluation runs that.
type Request struct {
	// As the client wrote it.
	ID        gvalue.UUID
	Op        string
	Processor string
	Args      *gvalue.Map // String keys

	// What is evaluated. Who embeds the server sets these alone.
	Script   string
	Bytecode *gvalue.Bytecode // nil: Script
	Bindings map[string]any
	Source   string        // the traversal source that g stands for
	Timeout  time.Duration // ends the evaluation; 0: none. A traversal's own is used when it is shorter
	Tokens   bool          // elements carry id and label only (materializeProperties = tokens)
	Service  bool          // the service's flavour and limits (64 KB of script)
}

// String returns a String argument; ok is false when it is absent, null or of another type.
func (r *Request) String(name string) (s string, ok bool) {
	v, _ := r.Args.GetString(name)
	s, ok = v.(string)
	return s, ok
}

// Map returns a Map argument; nil when it is absent, null or of another type.
func (r *Request) Map(name string) *gvalue.Map {
	v, _ := r.Args.GetString(name)
	m, _ := v.(*gvalue.Map)
	return m
}

// Int returns an argument that is an integer of any width, or a whole number; ok is false otherwise.
func (r *Request) Int(name string) (n int64, ok bool) {
	v, _ := r.Args.GetString(name)
	return AsInt(v)
}

// AsInt converts an integer of any width, or a whole number.
func AsInt(v any) (n int64, ok bool) {
	if f, ok := v.(float64); ok {
		return int64(f), f == float64(int64(f)) && f > -1e18 && f < 1e18
	}
	return gvalue.Integer(v)
}

// Attribute is one status attribute.
type Attribute struct {
	Key   string
	Value any
}

// Response is one message to a client, without its result items: those are written beforehand, one by one.
type Response struct {
	ID         gvalue.UUID
	NoID       bool // the request's id could not be read
	Code       int
	Message    string
	Attributes []Attribute
	NullData   bool // data is null and not a list
}

// Options say how results are written.
type Options struct {
	Tokens     bool // elements carry id and label only (materializeProperties = tokens)
	Traversers bool // each item is a Traverser: the answer of op bytecode
}

// Codec is one serializer. Its methods are safe for concurrent use.
type Codec interface {
	// ReadRequest decodes a request body. The request keeps no part of body. The error is a *FormatError.
	ReadRequest(body []byte) (*Request, error)

	// AppendItem appends one result item. On an error (a value that the format can't carry) dst may have grown by a
	// part of the item; cut it back.
	AppendItem(dst []byte, v any, bulk int64, o Options) ([]byte, error)

	// AppendResponse appends the whole response around n items as written by AppendItem; AppendSeparator was called
	// between them.
	AppendResponse(dst []byte, r *Response, items []byte, n int) []byte

	// AppendSeparator appends what stands between two items.
	AppendSeparator(dst []byte) []byte
}

// FormatError says that a request can't be decoded.
type FormatError struct {
	ID    gvalue.UUID // of the request
	HasID bool        // ID could be read
	Code  int         // Malformed or SerializationError
	Msg   string
}

// Error implements error.
func (e *FormatError) Error() string { return e.Msg }
