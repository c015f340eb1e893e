package doc

import (
	"fmt"
	"strings"
	"testing"
)

// sample returns an item of about n bytes with typical content: short strings, numbers, a list of small objects.
func sample(n int) string {
	var b strings.Builder
	b.WriteString(`{"id":"order-000017","tenant":"contoso","status":"shipped","total":129.95,"count":3,"paid":true,` +
		`"note":null`)
	for i := 0; b.Len() < n-150; i++ {
		if i == 0 {
			b.WriteString(`,"lines":[`)
		} else {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sku":"SKU-%05d","name":"Widget \"%d\" with a longer description","quantity":%d,`+
			`"price":%d.5,"created":1700000%d,"tags":["a","b"]}`, i, i, i, i, i)
	}
	if b.Len() > 150 {
		b.WriteByte(']')
	}
	b.WriteString(`,"address":{"city":"Redmond","zip":"98052"}}`)
	return b.String()
}

var sizes = []struct {
	name string
	n    int
}{{"0.3KB", 300}, {"1KB", 1024}, {"16KB", 16 << 10}, {"200KB", 200 << 10}}

func BenchmarkFromJSON(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			text := []byte(sample(s.n))
			dst := make([]byte, 0, 4*len(text))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := FromJSON(dst, text, JSONOptions{Names: NoSQL}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReadItemJSON measures the transcoding in a point read: stored bytes to the JSON of the reply.
func BenchmarkReadItemJSON(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			d := mustJSON(b, sample(s.n), JSONOptions{Names: NoSQL})
			dst := make([]byte, 0, 4*s.n)
			b.SetBytes(int64(len(sample(s.n))))
			b.ReportAllocs()
			for b.Loop() {
				AppendJSONFields(dst, d, NoSQL)
			}
		})
	}
}
