package graphapi

import (
	"strings"

	"github.com/orrerydb/orrery/graphapi/wire/graphbinary"
	"github.com/orrerydb/orrery/graphapi/wire/graphson"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// serializer is one row of the mime table.
type serializer struct {
	codec message.Codec
	// service is the codec of replies in the service's flavour; nil: codec. For the mime type of GraphSON 2 the service
	// replies with untyped JSON.
	service message.Codec
	refuse  string // known but not supported: the reason
}

var untyped = graphson.Codec{Version: 1}

// serializers is the table of mime types. A text frame counts as application/json. An unknown mime type gets a reply in
// the default serializer, GraphBinary, as from Gremlin Server.
var serializers = map[string]serializer{
	"application/vnd.graphbinary-v1.0":             {codec: graphbinary.Codec{}},
	"application/vnd.graphbinary-v1.0-stringd":     {codec: graphbinary.Codec{Strings: true}},
	"application/json":                             {codec: graphson.Codec{Version: 3}, service: untyped},
	"application/vnd.gremlin-v3.0+json":            {codec: graphson.Codec{Version: 3}},
	"application/vnd.gremlin-v3.0+json;types=true": {codec: graphson.Codec{Version: 3}},
	"application/vnd.gremlin-v2.0+json":            {codec: graphson.Codec{Version: 2}, service: untyped},
	"application/vnd.gremlin-v2.0+json;types=true": {codec: graphson.Codec{Version: 2}, service: untyped},
	"application/vnd.gremlin-v1.0+json":            {codec: untyped},
	"application/vnd.gremlin-v1.0+json;types=true": {codec: untyped},

	"application/vnd.gremlin-v3.0+json;types=false": {codec: graphson.Codec{Version: 3, Untyped: true}},
	"application/vnd.gremlin-v2.0+json;types=false": {
		codec: graphson.Codec{Version: 2, Untyped: true}, service: untyped},
	"application/vnd.gremlin-v1.0+json;types=false": {codec: untyped},
	"application/vnd.gremlin-v3.0+json-stringd":     {codec: graphson.Codec{Version: 3, Strings: true}},
	"application/vnd.gremlin-v2.0+json-stringd":     {codec: graphson.Codec{Version: 2, Strings: true}},
	"application/vnd.gremlin-v1.0+json-stringd":     {codec: graphson.Codec{Version: 1, Strings: true}},

	"application/vnd.gryo-v1.0":         {codec: graphbinary.Codec{}, refuse: "Gryo"},
	"application/vnd.gryo-v1.0-stringd": {codec: graphbinary.Codec{}, refuse: "Gryo"},
	"application/vnd.gryo-v3.0":         {codec: graphbinary.Codec{}, refuse: "Gryo"},
	"application/vnd.gryo-v3.0-stringd": {codec: graphbinary.Codec{}, refuse: "Gryo"},
}

const (
	defaultMime = "application/vnd.graphbinary-v1.0"
	textMime    = "application/json"
)

// lookup finds the serializer of a mime type, ignoring spaces and case.
func lookup(mime []byte) serializer {
	if s, ok := serializers[string(mime)]; ok {
		return s
	}
	s, ok := serializers[strings.ToLower(strings.ReplaceAll(string(mime), " ", ""))]
	if !ok {
		s = serializers[defaultMime]
	}
	return s
}

// answer returns the codec for replies.
func (s serializer) answer(service bool) message.Codec {
	if service && s.service != nil {
		return s.service
	}
	return s.codec
}

// splitFrame splits a binary frame: one byte with the length of the mime type, the mime type, the body.
//
//	20 "application/vnd.graphbinary-v1.0" 81 ..  ->  the mime type (0x20 bytes), the body 81 ..
func splitFrame(b []byte) (mime, body []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, false
	}
	n := 1 + int(b[0])
	return b[1:n], b[n:], true
}
