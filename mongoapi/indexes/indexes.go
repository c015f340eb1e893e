// Package indexes has MongoDB's declared indexes: their documents, what the core enforces of them, the rules of the
// indexing policy that follow from them, and the documents that they refuse.
//
// The core indexes every path. A declaration is listed for clients, and some become a rule of the policy: a compound
// index, one under a collation, on places, or of texts. What the core enforces, unique values and lifetimes, is in the
// spec's Declared too.
//
// Example: {key: {a: 1, b: -1}, name: "ab", unique: true} is stored as {v: 2, key: .., name: "ab", unique: true}. The
// policy gets a composite index of a and b, and the spec a declared index with unique values.
package indexes

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// Property is the container's property with a collection's declared indexes: a BSON array of their documents.
const Property = "mongo.indexes"

// Max is the largest number of indexes of a collection besides the one on `_id`.
const Max = 500

// OnID is the index that every collection has.
func OnID() value.Value {
	at, b := bson.Begin(nil)
	b = bson.AppendInt32(b, "v", 2)
	ka, b := bson.BeginObject(b, "key")
	b = bson.End(bson.AppendInt32(b, "_id", 1), ka)
	return value.ObjectOf(bson.End(bson.AppendString(b, "name", "_id_"), at))
}

// In returns the declared indexes of a container, without the one on `_id`.
func In(s *core.ContainerSpec) []value.Value {
	if b := s.Properties[Property]; len(b) >= 5 {
		return value.Elements(value.ArrayOf(b))
	}
	return nil
}

// With returns an index with another value of an option, or without it.
func With(d value.Value, name string, v value.Value, off bool) value.Value {
	at, b := bson.Begin(nil)
	for it := d.Iter(); it.Next(); {
		if string(it.Key()) != name {
			b = append(b, it.Element()...)
		}
	}
	if !off {
		b = value.AppendElement(b, name, v)
	}
	return value.ObjectOf(bson.End(b, at))
}

// IsOnID reports whether a key is that of the index on `_id`.
func IsOnID(key value.Value) bool {
	it := key.Iter()
	return key.Len() == 1 && it.Next() && string(it.Key()) == "_id" && it.Value().IsNumber()
}

// Known reports whether an index is already declared. An index is told by its key, filter, and whether it is unique or
// sparse. One with the same name that is another one is an error, and so is the same one with another name or other
// options.
func Known(specs []value.Value, d value.Value) (bool, error) {
	if IsOnID(d.Get("key")) {
		return true, nil
	}
	for _, o := range append([]value.Value{OnID()}, specs...) {
		same, name := same(o, d), o.Get("name").Str()
		switch sameName := name == d.Get("name").Str(); {
		case sameName && same && sameOptions(o, d):
			return true, nil
		case sameName && same:
			return false, merr.New(merr.IndexOptionsConflict, "An equivalent index already exists with the same "+
				"name but different options. Requested index: %s, existing index: %s", update.Show(d), update.Show(o))
		case sameName:
			return false, merr.New(merr.IndexKeySpecsConflict, "An existing index has the same name as the "+
				"requested index. When index names are not specified, they are auto generated and can cause "+
				"conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", update.Show(d),
				update.Show(o))
		}
	}
	for _, o := range specs {
		if !same(o, d) {
			continue
		}
		if sameOptions(o, d) {
			return false, merr.New(merr.IndexOptionsConflict, "Index already exists with a different name: %s",
				o.Get("name").Str())
		}
		return false, merr.New(merr.IndexOptionsConflict, "An equivalent index already exists with a different name "+
			"and options. Requested index: %s, existing index: %s", update.Show(d), update.Show(o))
	}
	return false, nil
}

// telling are the fields that tell an index from others.
var telling = []string{"key", "unique", "sparse", "partialFilterExpression", "collation"}

func same(a, b value.Value) bool {
	for _, name := range telling {
		if value.CompareBSON(told(a, name), told(b, name)) != 0 {
			return false
		}
	}
	return true
}

// told returns an option for comparisons: one that says false is as if it weren't there.
func told(d value.Value, name string) value.Value {
	if v := d.Get(name); v.Kind() != value.Bool || v.Bool() {
		return v
	}
	return value.Undef()
}

// incidental are the options that may differ between two requests for one index.
var incidental = map[string]bool{"hidden": true, "comment": true, "background": true}

// sameOptions reports whether two indexes have the same other options.
func sameOptions(a, b value.Value) bool {
	for name := range options {
		if !incidental[name] && value.CompareBSON(told(a, name), told(b, name)) != 0 {
			return false
		}
	}
	return true
}
