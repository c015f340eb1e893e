package graphapi

import (
	"testing"

	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// BenchmarkCodec measures reading a request for one vertex and writing its reply.
func BenchmarkCodec(b *testing.B) {
	body := []byte(`{"requestId":{"@type":"g:UUID","@value":"` + id1 + `"},"op":"eval","processor":"",` +
		`"args":{"gremlin":"g.V('1')","aliases":{"g":"g"},` +
		`"bindings":{"x":1},"language":"gremlin-groovy","accept":"application/vnd.gremlin-v2.0+json"}}`)
	v := benchVertex()
	for _, mime := range []string{v2Mime, defaultMime} {
		b.Run(mime, func(b *testing.B) {
			codec := serializers[v2Mime].codec
			answer := serializers[mime].codec
			var items, out []byte
			b.ReportAllocs()
			for b.Loop() {
				req, err := codec.ReadRequest(body)
				if err != nil {
					b.Fatal(err)
				}
				items, err = answer.AppendItem(items[:0], v, 1, message.Options{})
				if err != nil {
					b.Fatal(err)
				}
				out = answer.AppendResponse(out[:0], &message.Response{ID: req.ID, Code: 200}, items, 1)
			}
		})
	}
}

// BenchmarkRoundTrip measures a complete request over a socket with an engine that does nothing.
func BenchmarkRoundTrip(b *testing.B) {
	c := newServer(b, false).dial(b)
	frame := []byte(`{"requestId":"` + id1 + `","op":"eval","processor":"","args":{"gremlin":"vertex"}}`)
	frame = append(append([]byte{byte(len(v2Mime))}, v2Mime...), frame...)
	b.ReportAllocs()
	for b.Loop() {
		c.raw(frame)
		if _, _, err := c.ws.ReadMessage(); err != nil {
			b.Fatal(err)
		}
	}
}
