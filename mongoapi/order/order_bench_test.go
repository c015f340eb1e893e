package order

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// BenchmarkTwoFields makes the keys of a sort by two fields, which stand behind twenty others. Without arrays the check
// for parallel arrays costs nothing: plain and checked take the same time.
func BenchmarkTwoFields(b *testing.B) {
	at, d := bson.Begin(nil)
	for i := range 20 {
		d = bson.AppendString(d, fmt.Sprintf("field%d", i), strings.Repeat("x", 40))
	}
	d = bson.AppendInt32(d, "a", 1)
	doc := value.ObjectOf(bson.End(bson.AppendString(d, "b", "text"), at))
	o := Order{{Path: []string{"a"}}, {Path: []string{"b"}, Desc: true}}
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, c := range o {
				Key(doc, c)
			}
		}
	})
	b.Run("checked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, c := range o {
				if _, array := KeyOf(doc, c); array {
					b.Fatal("an array")
				}
			}
		}
	})
	b.Run("check of each document", func(b *testing.B) { // what it would cost otherwise
		b.ReportAllocs()
		for b.Loop() {
			if err := o.Check(doc); err != nil {
				b.Fatal(err)
			}
			for _, c := range o {
				Key(doc, c)
			}
		}
	})
}
