// Package shareddata provides fixed edge values for all APIs: what is stored and how each API shows it.
package shareddata

import (
	_ "embed"
	"strings"
)

// Value is one edge value.
type Value struct {
	Name    string
	BSON    string // the stored value: canonical Extended JSON of {"v": value}
	NoSQL   string // in a container without Extended JSON
	Relaxed string // in a container with Extended JSON
	Form    string // in a table
	Table   string // the Edm type if annotated, and JSON as in aztables; "absent"
	Gremlin string // Go types and values of values('v') in gremlin-go
}

//go:embed values.txt
var text string

// Faces are the names of the lines of a value in values.txt, in order.
var Faces = []string{"bson", "nosql", "relaxed", "form", "table", "gremlin"}

// Face returns the line with this name.
func (v *Value) Face(name string) *string {
	return map[string]*string{"bson": &v.BSON, "nosql": &v.NoSQL, "relaxed": &v.Relaxed, "form": &v.Form,
		"table": &v.Table, "gremlin": &v.Gremlin}[name]
}

// Values parses values.txt: for each value a line with its name, one line for each face, and an empty line.
func Values() []Value {
	var out []Value
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		var v Value
		for _, line := range strings.Split(block, "\n") {
			name, rest, ok := strings.Cut(line, ": ")
			if p := v.Face(name); ok && p != nil {
				*p = rest
			} else if v.Name == "" {
				v.Name = line
			} else {
				panic("values.txt: " + line)
			}
		}
		out = append(out, v)
	}
	return out
}

// Format writes values in the form of values.txt.
func Format(vs []Value) string {
	var b strings.Builder
	for i := range vs {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(vs[i].Name + "\n")
		for _, f := range Faces {
			b.WriteString(f + ": " + *vs[i].Face(f) + "\n")
		}
	}
	return b.String()
}
