// Package message defines the requests and responses of the Gremlin Server protocol, which the two serializers
// (graphbinary, graphson) read and write.
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
)

// Limits of messages.
const (
	MaxValuesPerRequest = 1 << 20 // values in a request, over all its levels
	MaxDepth            = 250     // levels of nesting in a request or a result
)

// Request is one request from its frame to its evaluation. A codec reads the fields of the message, the door sets from
// the arguments what is to be evaluated, and the evaluation runs that.
type Request struct {
	// As sent by the client.
	ID        gvalue.UUID
	Op        string
	Processor string
	Args      *gvalue.Map // String keys

	// What is evaluated. An embedding program sets only these fields.
	Script   string
	Bytecode *gvalue.Bytecode // nil: Script
	Bindings map[string]any
	Source   string        // the traversal source with the name g
	Timeout  time.Duration // limits the evaluation; 0: no limit. A shorter timeout of the traversal has precedence
	Tokens   bool          // elements have only id and label (materializeProperties = tokens)
	Service  bool          // the service's flavour and limits (64 KB of script)
	Lazy     bool          // a result may be a gvalue.LazyMap
}

// String returns a String argument. ok is false if it is absent, null or of another type.
func (r *Request) String(name string) (s string, ok bool) {
	v, _ := r.Args.GetString(name)
	s, ok = v.(string)
	return s, ok
}

// Map returns a Map argument, nil if it is absent, null or of another type.
func (r *Request) Map(name string) *gvalue.Map {
	v, _ := r.Args.GetString(name)
	m, _ := v.(*gvalue.Map)
	return m
}

// Int returns an argument that is an integer of any width or a whole number. Otherwise ok is false.
func (r *Request) Int(name string) (n int64, ok bool) {
	v, _ := r.Args.GetString(name)
	return asInt(v)
}

// asInt converts an integer of any width, or a whole number.
func asInt(v any) (n int64, ok bool) {
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

// Response is one message to a client, without its result items, which are written before, one by one.
type Response struct {
	ID         gvalue.UUID
	NoID       bool // the request's id is unknown, because it couldn't be read
	Code       int
	Message    string
	Attributes []Attribute
	NullData   bool // data is null instead of a list
}

// Options say how results are written.
type Options struct {
	Tokens     bool // elements have only id and label (materializeProperties = tokens)
	Traversers bool // each item is a Traverser: in replies to op bytecode
}

// Codec is one serializer. Its methods are safe for concurrent use.
type Codec interface {
	// ReadRequest decodes a request body. The request doesn't refer to body. The error is a *FormatError.
	ReadRequest(body []byte) (*Request, error)

	// AppendItem appends one result item. After an error (a value that the format can't express) dst may have a part of
	// the item, which the caller must remove.
	AppendItem(dst []byte, v any, bulk int64, o Options) ([]byte, error)

	// AppendResponse appends the whole response. items are n items of AppendItem, with AppendSeparator between them.
	AppendResponse(dst []byte, r *Response, items []byte, n int) []byte

	// AppendSeparator appends the separator between two items.
	AppendSeparator(dst []byte) []byte
}

// FormatError is the error for a request that can't be decoded.
type FormatError struct {
	ID    gvalue.UUID // of the request
	HasID bool        // ID is known
	Code  int         // Malformed or SerializationError
	Msg   string
}

// Error implements error.
func (e *FormatError) Error() string { return e.Msg }
