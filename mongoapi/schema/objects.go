package schema

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// named is a schema for a property.
type named struct {
	name string
	s    *Schema
}

// props is the rule properties.
type props []named

func properties(c *compiler, name string, v, _ value.Value) (rule, error) {
	if v.Kind() != value.Object {
		return nil, wrongType(name, "an object")
	}
	var out props
	for it := v.Iter(); it.Next(); {
		if it.Value().Kind() != value.Object {
			return nil, merr.New(merr.TypeMismatch, "Nested schema for $jsonSchema property '%s' must be an object",
				it.Key())
		}
		s, err := c.schema(it.Value())
		if err != nil {
			return nil, err
		}
		out = append(out, named{string(it.Key()), s})
	}
	return out, nil
}

func (p props) holds(v value.Value) bool {
	if v.Kind() != value.Object {
		return true
	}
	for _, n := range p {
		if x := v.Get(n.name); x.IsDefined() && !n.s.holds(x) {
			return false
		}
	}
	return true
}

func (p props) explain(dst []byte, v value.Value) []byte {
	dst = bson.AppendString(dst, "operatorName", "properties")
	at, dst := bson.BeginArray(dst, "propertiesNotSatisfied")
	i := 0
	for _, n := range p {
		x := v.Get(n.name)
		if !x.IsDefined() || n.s.holds(x) {
			continue
		}
		oa, ob := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, i))
		ob = append(bson.AppendString(ob, "propertyName", n.name), n.s.notes...)
		dst = bson.End(n.s.broken(ob, "details", x), oa)
		i++
	}
	return bson.End(dst, at)
}

func required(_ *compiler, name string, v, _ value.Value) (rule, error) {
	if v.Kind() != value.Array {
		return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword 'required' must be an array, but found an "+
			"element of type %s", expr.TypeName(v))
	}
	var names []string
	for it := v.Iter(); it.Next(); {
		if it.Value().Kind() != value.String {
			return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword 'required' must be an array of strings, but "+
				"found an element of type: %s", expr.TypeName(it.Value()))
		}
		names = append(names, it.Value().Str())
	}
	if len(names) == 0 {
		return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword 'required' cannot be an empty array")
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) < len(names) {
		return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword 'required' array cannot contain duplicate "+
			"values")
	}
	return &leaf{name: name, spec: object(name, v),
		test: func(v value.Value) bool { return len(lacks(v, names)) == 0 },
		more: func(dst []byte, v value.Value) []byte {
			return bson.AppendStrings(dst, "missingProperties", lacks(v, names)...)
		}}, nil
}

// lacks returns the names that an object doesn't have. Other values lack nothing.
func lacks(v value.Value, names []string) (out []string) {
	if v.Kind() != value.Object {
		return nil
	}
	for _, n := range names {
		if !v.Get(n).IsDefined() {
			out = append(out, n)
		}
	}
	return out
}

// allowed is the rule patternProperties with additionalProperties: both need to know which properties the other one
// has.
type allowed struct {
	names    map[string]bool // in properties
	patterns []patterned
	others   *Schema // for additional properties; nil: any
	none     bool    // there must be no additional properties
}

type patterned struct {
	named
	match func(name []byte) bool
}

func allowedProperties(c *compiler, _ string, v, schema value.Value) (rule, error) {
	patterns := schema.Get("patternProperties")
	if !v.IsDefined() && !patterns.IsDefined() {
		return nil, nil
	}
	a := &allowed{names: map[string]bool{}}
	for it := schema.Get("properties").Iter(); it.Next(); {
		a.names[string(it.Key())] = true
	}
	if patterns.IsDefined() && patterns.Kind() != value.Object {
		return nil, wrongType("patternProperties", "an object")
	}
	for it := patterns.Iter(); it.Next(); {
		raw := string(it.Key())
		if it.Value().Kind() != value.Object {
			return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword 'patternProperties' has property '%s' which "+
				"is not an object", raw)
		}
		re, _, err := expr.Regexp(raw, "")
		if err != nil {
			return nil, err
		}
		s, err := c.schema(it.Value())
		if err != nil {
			return nil, err
		}
		a.patterns = append(a.patterns, patterned{named{raw, s}, func(b []byte) bool { return c.run.Match(re, b) }})
	}
	switch v.Kind() {
	case value.Undefined:
	case value.Bool:
		a.none = !v.Bool()
	case value.Object:
		s, err := c.schema(v)
		a.others = s
		return a, err
	default:
		return nil, wrongType("additionalProperties", "an object or a boolean")
	}
	return a, nil
}

// additional reports whether a property is in none of properties and patternProperties.
func (a *allowed) additional(name []byte) bool {
	return !a.names[string(name)] &&
		!slices.ContainsFunc(a.patterns, func(p patterned) bool { return p.match(name) })
}

func (a *allowed) holds(v value.Value) bool { return len(a.parts(v)) == 0 }

func (a *allowed) explain(dst []byte, _ value.Value) []byte { return dst } // see Schema.broken

// parts tells of an object's additional properties, and of those with a pattern; each only if they break the rule.
func (a *allowed) parts(v value.Value) (out [][]byte) {
	if v.Kind() != value.Object {
		return nil
	}
	var extra []string
	failing := value.Undef()
	first := ""
	for it := v.Iter(); it.Next(); {
		if !a.additional(it.Key()) {
			continue
		}
		extra = append(extra, string(it.Key()))
		if a.others != nil && first == "" && !a.others.holds(it.Value()) {
			first, failing = string(it.Key()), it.Value()
		}
	}
	name := bson.AppendString(nil, "operatorName", "additionalProperties")
	switch {
	case a.none && len(extra) > 0:
		b := value.AppendElement(name, "specifiedAs", object("additionalProperties", value.BoolOf(false)))
		out = append(out, bson.AppendStrings(b, "additionalProperties", extra...))
	case failing.IsDefined():
		b := append(name, a.others.notes...)
		b = bson.AppendString(b, "reason", "at least one additional property did not match the subschema")
		b = bson.AppendString(b, "failingProperty", first)
		out = append(out, a.others.broken(b, "details", failing))
	}
	if b := a.byPattern(v); b != nil {
		out = append(out, b)
	}
	return out
}

// byPattern tells of the first property for each pattern that breaks its schema; nil if there is none.
func (a *allowed) byPattern(v value.Value) []byte {
	at, b := bson.BeginArray(bson.AppendString(nil, "operatorName", "patternProperties"), "details")
	n := 0
	for _, p := range a.patterns {
		for it := v.Iter(); it.Next(); {
			if !p.match(it.Key()) || p.s.holds(it.Value()) {
				continue
			}
			oa, ob := bson.Begin(bson.AppendIndexHead(b, bson.TypeDocument, n))
			ob = append(bson.AppendString(ob, "propertyName", string(it.Key())), p.s.notes...)
			ob = bson.AppendString(ob, "regexMatched", p.name)
			b = bson.End(p.s.broken(ob, "details", it.Value()), oa)
			n++
			break
		}
	}
	if n == 0 {
		return nil
	}
	return bson.End(b, at)
}

// dependency is what an object with a property must fulfil.
type dependency struct {
	name  string
	names []string // other properties
	s     *Schema
}

type depends []dependency

func dependencies(c *compiler, name string, v, _ value.Value) (rule, error) {
	if v.Kind() != value.Object {
		return nil, wrongType(name, "an object")
	}
	var out depends
	for it := v.Iter(); it.Next(); {
		d := dependency{name: string(it.Key())}
		var err error
		switch it.Value().Kind() {
		case value.Object:
			d.s, err = c.schema(it.Value())
		case value.Array:
			d.names, err = dependent(d.name, it.Value())
		default:
			err = merr.New(merr.TypeMismatch, "property '%s' in $jsonSchema keyword 'dependencies' must be either an "+
				"object or an array", d.name)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func dependent(name string, v value.Value) (names []string, err error) {
	if v.Len() == 0 {
		return nil, merr.New(merr.FailedToParse, "property '%s' in $jsonSchema keyword 'dependencies' cannot be an "+
			"empty array", name)
	}
	for it := v.Iter(); it.Next(); {
		text := it.Value().Str()
		if it.Value().Kind() != value.String {
			return nil, merr.New(merr.TypeMismatch, "array '%s' in $jsonSchema keyword 'dependencies' can only "+
				"contain strings, but found element of type: %s", name, expr.TypeName(it.Value()))
		}
		if slices.Contains(names, text) {
			return nil, merr.New(merr.FailedToParse, "array '%s' in $jsonSchema keyword 'dependencies' contains "+
				"duplicate element: %s", name, text)
		}
		names = append(names, text)
	}
	return names, nil
}

func (d dependency) holds(v value.Value) bool {
	if v.Kind() != value.Object || !v.Get(d.name).IsDefined() {
		return true
	}
	return len(lacks(v, d.names)) == 0 && (d.s == nil || d.s.holds(v))
}

func (d depends) holds(v value.Value) bool {
	return !slices.ContainsFunc(d, func(x dependency) bool { return !x.holds(v) })
}

func (d depends) explain(dst []byte, v value.Value) []byte {
	dst = bson.AppendString(dst, "operatorName", "dependencies")
	at, dst := bson.BeginArray(dst, "failingDependencies")
	n := 0
	for _, x := range d {
		if x.holds(v) {
			continue
		}
		oa, ob := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, n))
		ob = bson.AppendString(ob, "conditionalProperty", x.name)
		if x.s != nil {
			ob = x.s.broken(append(ob, x.s.notes...), "details", v)
		} else {
			ob = bson.AppendStrings(ob, "missingProperties", lacks(v, x.names)...)
		}
		dst = bson.End(ob, oa)
		n++
	}
	return bson.End(dst, at)
}

// alternatives is allOf, anyOf or oneOf.
type alternatives struct {
	name string
	of   []*Schema
}

func several(c *compiler, name string, v, _ value.Value) (rule, error) {
	list, err := c.schemas(name, v)
	return &alternatives{name, list}, err
}

func (a *alternatives) holds(v value.Value) bool {
	n := len(a.matching(v))
	switch {
	case strings.HasPrefix(a.name, "all"):
		return n == len(a.of)
	case strings.HasPrefix(a.name, "any"):
		return n > 0
	}
	return n == 1
}

// matching returns the positions of the schemas that v follows.
func (a *alternatives) matching(v value.Value) (out []value.Value) {
	for i, s := range a.of {
		if s.holds(v) {
			out = append(out, value.Int32Of(int32(i)))
		}
	}
	return out
}

func (a *alternatives) explain(dst []byte, v value.Value) []byte {
	dst = bson.AppendString(dst, "operatorName", a.name)
	if m := a.matching(v); a.name == "oneOf" && len(m) > 0 {
		dst = bson.AppendString(dst, "reason", "more than one subschema matched")
		return value.AppendElement(dst, "matchingSchemaIndexes", value.MakeArray(m))
	}
	at, dst := bson.BeginArray(dst, "schemasNotSatisfied")
	n := 0
	for i, s := range a.of {
		if s.holds(v) {
			continue
		}
		oa, ob := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, n))
		ob = append(bson.AppendInt64(ob, "index", int64(i)), s.notes...)
		dst = bson.End(s.broken(ob, "details", v), oa)
		n++
	}
	return bson.End(dst, at)
}

// negation is the rule not.
type negation struct{ s *Schema }

func not(c *compiler, name string, v, _ value.Value) (rule, error) {
	if v.Kind() != value.Object {
		return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword 'not' must be an object, but found an element of "+
			"type %s", expr.TypeName(v))
	}
	s, err := c.schema(v)
	return negation{s}, err
}

func (n negation) holds(v value.Value) bool { return !n.s.holds(v) }

func (n negation) explain(dst []byte, _ value.Value) []byte {
	dst = bson.AppendString(dst, "operatorName", "not")
	return bson.AppendString(dst, "reason", "child expression matched")
}
