package plan

import (
	"testing"

	"github.com/cockroachdb/datadriven"
)

// BenchmarkChoose measures planning a query, without the statistics.
func BenchmarkChoose(b *testing.B) {
	t := &testing.T{}
	for name, x := range map[string]*datadriven.TestData{
		"equality":       {Input: "(eq n 1)"},
		"two conditions": {Input: "(and (eq n 1) (range m =1 -))"},
		"partition":      {Input: "(eq n 1)", CmdArgs: []datadriven.CmdArg{{Key: "pk", Vals: []string{"p"}}}},
		"sort": {Input: "(eq n 1)", CmdArgs: []datadriven.CmdArg{{Key: "order", Vals: []string{"m"}},
			{Key: "limit", Vals: []string{"10"}}}},
	} {
		b.Run(name, func(b *testing.B) {
			f, r := setUp(t, x)
			b.ReportAllocs()
			for b.Loop() {
				f.asked = f.asked[:0]
				Choose(r, f)
			}
		})
	}
}
