package sql

import (
	"context"
	"testing"
)

// constantFunctions have the value 1. The function part reads one property of its argument.
type constantFunctions struct{}

// Has implements Functions.
func (constantFunctions) Has(string) bool { return true }

// Reads implements Functions.
func (constantFunctions) Reads(name string) [][]string {
	if name == "part" {
		return [][]string{{"n"}}
	}
	return nil
}

// Call implements Functions.
func (constantFunctions) Call(_ context.Context, _ string, args [][]byte) ([][]byte, error) {
	values := make([][]byte, len(args))
	for i := range values {
		values[i] = []byte("1")
	}
	return values, nil
}

// BenchmarkUserDefined is what a query with a user-defined function costs for each of 1,000 items beyond the function
// itself.
func BenchmarkUserDefined(b *testing.B) {
	c := numbered(b, 1000)
	env := *testEnv
	env.Functions = constantFunctions{}
	for name, text := range map[string]string{
		"Built-in": `SELECT VALUE ABS(c.n) FROM c WHERE ABS(c.g) >= 0`,
		"Select":   `SELECT VALUE udf.f(c.n) FROM c`,
		"Where":    `SELECT VALUE c.n FROM c WHERE udf.f(c.n) = 1`,
		"Item":     `SELECT VALUE udf.f(c) FROM c`,
		"Part":     `SELECT VALUE udf.part(c) FROM c`,
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				pl, err := Compile(text, nil, &env)
				if err != nil {
					b.Fatal(err)
				}
				var out Page
				if err := pl.Execute(context.Background(), c, Request{}, &out); err != nil || out.Count != 1000 {
					b.Fatal(out.Count, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/item")
		})
	}
}
