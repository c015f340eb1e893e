// Package schema compiles the JSON Schema of $jsonSchema: draft 4 with BSON types, as MongoDB has it. A Schema tests
// documents, and tells which of its rules a document breaks.
//
// The registry of keywords is the table keywords (keywords.go). A new keyword needs an entry there, its rule, and lines
// in testdata.
//
// Example: {required: ["a"], properties: {a: {bsonType: "int", minimum: 0}}} has two rules, required and properties.
// {a: -1} breaks the second one: of the rules of a, bsonType holds and minimum doesn't.
package schema

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// maxDepth limits the nesting of schemas.
const maxDepth = 100

// Schema is a compiled schema.
type Schema struct {
	rules []rule
	notes []byte // title and description, as elements
}

// rule is one keyword of a schema. A rule that isn't for values of a kind holds for them: a minimum for all strings.
type rule interface {
	holds(v value.Value) bool
	// explain appends why v breaks the rule, as elements of an object. It is called only then.
	explain(dst []byte, v value.Value) []byte
}

// compiler has what is common to the schemas of one $jsonSchema.
type compiler struct {
	run   *expr.Run
	depth int
}

// Compile compiles the argument of $jsonSchema. spec must not change while the result is in use. run is that of the
// matches; nil = it is never ended.
func Compile(spec value.Value, run *expr.Run) (*Schema, error) {
	if spec.Kind() != value.Object {
		return nil, merr.New(merr.TypeMismatch, "$jsonSchema must be an object")
	}
	return (&compiler{run: run}).schema(spec)
}

// Matches reports whether a document follows the schema.
func (s *Schema) Matches(doc value.Value) bool { return s.holds(doc) }

// Explain appends the elements of a description of the rules that a document breaks.
func (s *Schema) Explain(dst []byte, doc value.Value) []byte {
	dst = append(bson.AppendString(dst, "operatorName", "$jsonSchema"), s.notes...)
	return s.broken(dst, "schemaRulesNotSatisfied", doc)
}

func (s *Schema) holds(v value.Value) bool {
	for _, r := range s.rules {
		if !r.holds(v) {
			return false
		}
	}
	return true
}

// broken appends an array with the rules that v breaks.
func (s *Schema) broken(dst []byte, name string, v value.Value) []byte {
	at, dst := bson.BeginArray(dst, name)
	n := 0
	for _, r := range s.rules {
		if r.holds(v) {
			continue
		}
		if two, ok := r.(*allowed); ok { // one rule, but two keywords
			for _, b := range two.parts(v) {
				oa, ob := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, n))
				dst = bson.End(append(ob, b...), oa)
				n++
			}
			continue
		}
		oa, ob := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, n))
		dst = bson.End(r.explain(ob, v), oa)
		n++
	}
	return bson.End(dst, at)
}

// schema compiles a schema or a part of it.
func (c *compiler) schema(spec value.Value) (*Schema, error) {
	if c.depth++; c.depth > maxDepth {
		return nil, merr.New(merr.FailedToParse, "$jsonSchema exceeds the depth limit of %d", maxDepth)
	}
	defer func() { c.depth-- }()
	seen := map[string]bool{}
	for it := spec.Iter(); it.Next(); {
		name := string(it.Key())
		switch {
		case refused[name]:
			return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword '%s' is not currently supported", name)
		case !known[name]:
			return nil, merr.New(merr.FailedToParse, "Unknown $jsonSchema keyword: %s", name)
		case seen[name]:
			return nil, merr.New(merr.FailedToParse, "Duplicate $jsonSchema keyword: %s", name)
		}
		seen[name] = true
	}
	if seen["type"] && seen["bsonType"] {
		return nil, merr.New(merr.FailedToParse, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'")
	}
	s := &Schema{}
	for _, name := range []string{"title", "description"} {
		v := spec.Get(name)
		if v.IsDefined() && v.Kind() != value.String {
			return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword '%s' must be of type string", name)
		}
		s.notes = value.AppendElement(s.notes, name, v)
	}
	for _, k := range keywords {
		v := spec.Get(k.name)
		if !v.IsDefined() && !k.always {
			continue
		}
		r, err := k.compile(c, k.name, v, spec)
		if err != nil {
			return nil, err
		}
		if r != nil {
			s.rules = append(s.rules, r)
		}
	}
	return s, nil
}

// schemas compiles the argument of allOf, anyOf and oneOf.
func (c *compiler) schemas(name string, v value.Value) (out []*Schema, err error) {
	if v.Kind() != value.Array {
		return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword '%s' must be an array", name)
	}
	if v.Len() == 0 {
		return nil, merr.New(merr.BadValue, "$jsonSchema keyword '%s' must be a non-empty array", name)
	}
	for it := v.Iter(); it.Next(); {
		if it.Value().Kind() != value.Object {
			return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword '%s' must be an array of objects, but found "+
				"an element of type %s", name, expr.TypeName(it.Value()))
		}
		s, err := c.schema(it.Value())
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// leaf is a rule about one value, with the server's reason.
type leaf struct {
	name   string
	spec   value.Value // the object {name: argument}
	reason string
	test   func(v value.Value) bool
	more   func(dst []byte, v value.Value) []byte // what else is told; nil: the value
}

func (l *leaf) holds(v value.Value) bool { return l.test(v) }

func (l *leaf) explain(dst []byte, v value.Value) []byte {
	dst = bson.AppendString(dst, "operatorName", l.name)
	dst = value.AppendElement(dst, "specifiedAs", l.spec)
	if l.reason != "" {
		dst = bson.AppendString(dst, "reason", l.reason)
	}
	if l.more == nil {
		return value.AppendElement(dst, "consideredValue", v)
	}
	return l.more(dst, v)
}

// object returns {name: v}.
func object(name string, v value.Value) value.Value {
	at, b := bson.Begin(nil)
	return value.ObjectOf(bson.End(value.AppendElement(b, name, v), at))
}
