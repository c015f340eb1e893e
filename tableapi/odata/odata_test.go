package odata

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
)

// entities are the rows that the filter scripts select from. The script's command "rows" sets them, one JSON entity a
// line.
type entities []edm.Entity

func (e entities) match(filter string) string {
	n, err := Parse(filter)
	if err != nil {
		if err.(*Error).NotImplemented {
			return "not implemented: " + err.Error()
		}
		return "error: " + err.Error()
	}
	f := Compile(n, func(prop string) func(*edm.Entity) value.Value {
		return func(e *edm.Entity) value.Value {
			for i := range e.Props {
				if string(e.Props[i].Name) == prop {
					return e.Props[i].Value
				}
			}
			switch prop {
			case edm.PartitionKey:
				return value.StringOf(e.PartitionKey)
			case edm.RowKey:
				return value.StringOf(e.RowKey)
			}
			return value.Undef()
		}
	})
	var keys []string
	for i := range e {
		if f(&e[i]) {
			keys = append(keys, e[i].RowKey)
		}
	}
	if keys == nil {
		return "(none)"
	}
	return strings.Join(keys, " ")
}

// TestScripts runs testdata: "rows" sets the entities, "filter" prints the RowKeys of those that each line selects,
// "address" parses each line as a resource address.
func TestScripts(t *testing.T) {
	var rows entities
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for _, line := range strings.Split(d.Input, "\n") {
				switch d.Cmd {
				case "rows":
					var e edm.Entity
					if err := e.Parse([]byte(line)); err != nil {
						t.Fatal(err)
					}
					rows = append(rows, e)
				case "filter":
					fmt.Fprintln(&out, rows.match(line))
				case "address":
					a, err := ParseAddress(line)
					if err != nil {
						fmt.Fprintln(&out, "error:", err)
						continue
					}
					kind := [...]string{"service", "tables", "table", "entities", "entity", "batch"}[a.Kind]
					fmt.Fprintf(&out, "%s table=%q pk=%q rk=%q\n", kind, a.Table, a.PartitionKey, a.RowKey)
				}
			}
			return out.String()
		})
	})
}

func TestBounds(t *testing.T) {
	if n, err := Parse("  "); n != nil || err != nil {
		t.Errorf("an empty filter is no filter: %v, %v", n, err)
	}
	if a, err := ParseAddress(""); a.Kind != Service || err != nil {
		t.Errorf("the empty address is the account: %v, %v", a, err)
	}
	wide := strings.Repeat("a eq 1 or ", 5000) + "a eq 2"
	if _, err := Parse(wide); err != nil {
		t.Errorf("5001 comparisons: %v", err)
	}
	for name, s := range map[string]string{
		"parentheses": strings.Repeat("(", 100_000),
		"not":         strings.Repeat("not ", 50_000),
		"length":      strings.Repeat("a", maxFilterBytes+1),
	} {
		if _, err := Parse(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSelect(t *testing.T) {
	for in, want := range map[string]string{
		"": "all", "*": "all", "a,*": "all", "a": "[a]", " a , b ": "[a b]", "a,,b": "[a  b]",
	} {
		got := "all"
		if names := ParseSelect(in); names != nil {
			got = fmt.Sprint(names)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// TestRegistry: the lists of known words don't overlap.
func TestRegistry(t *testing.T) {
	for w := range comparisons {
		if notImplemented[w] {
			t.Errorf("%s is in both lists", w)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		"PartitionKey eq 'a' and RowKey ge 'b' or not (x lt 5L)", "datetime'2024-01-01T00:00:00Z' le t", "X'00ff' eq b",
		"guid'6f1ed002-ab55-4d5a-b7ee-3ff5ef60ba1a' ne g", "true", "((a)) eq -1.5e-3", "startswith(a,'b')",
		"'it''s' eq s",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Parse(s)
		if err != nil {
			return
		}
		get := func(string) func(int) value.Value { return func(int) value.Value { return value.Int32Of(5) } }
		m := Compile(n, get)
		if not := Compile(&Node{Kind: Not, Args: []*Node{n}}, get); n != nil && m(0) == not(0) {
			t.Fatalf("%q equals its negation", s)
		}
	})
}

func FuzzAddress(f *testing.F) {
	f.Add("p", "r")
	f.Add("O'Brien", "a',RowKey='b")
	f.Fuzz(func(t *testing.T, pk, rk string) {
		_, _ = ParseAddress(pk + rk)
		seg := string(edm.AppendLink(nil, "t", []byte(pk), []byte(rk)))
		a, err := ParseAddress(seg)
		if strings.Contains(pk+rk, "'") {
			return // a doubled quote before text that looks like an end is ambiguous
		}
		if err != nil || a.PartitionKey != pk || a.RowKey != rk {
			t.Fatalf("%s: %+v, %v", seg, a, err)
		}
	})
}
