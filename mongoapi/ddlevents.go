package mongoapi

import (
	"slices"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// What change streams show of the commands that change collections and indexes: notes of the catalog's entries in the
// journal. core/catalog makes those of creations, drops and renames itself.

// eventOf returns the note of a change with a description; Undefined: none.
func eventOf(kind string, description value.Value) []byte {
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "type", kind)
	if description.IsDefined() {
		b = value.AppendElement(b, "operationDescription", description)
	}
	return bson.End(b, at)
}

// createEvent returns the note of a creation with options.
func createEvent(options []byte) []byte { return eventOf("create", optionsIn(options)) }

// enabledImages is the option changeStreamPreAndPostImages of a collection that has it.
func enabledImages() value.Value {
	at, b := bson.Begin(nil)
	return value.ObjectOf(bson.End(bson.AppendBool(b, "enabled", true), at))
}

// indexEvent returns the note of a change of some indexes.
func indexEvent(kind string, indexes []value.Value) []byte {
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, "indexes", value.MakeArray(indexes))
	return eventOf(kind, value.ObjectOf(bson.End(b, at)))
}

// missing returns the elements of all that some lacks.
func missing(all, some []value.Value) (out []value.Value) {
	for _, v := range all {
		if !slices.ContainsFunc(some, func(s value.Value) bool { return value.Identical(s, v) }) {
			out = append(out, v)
		}
	}
	return out
}

// modEvent returns the note of a collMod.
func (r *request) modEvent() []byte {
	at, b := bson.Begin(nil)
	for it := r.body.Iter(); it.Next(); {
		switch key := string(it.Key()); key {
		case "index", "changeStreamPreAndPostImages", "cappedSize", "cappedMax", "expireAfterSeconds", "timeseries":
			b = append(b, it.Element()...)
		}
	}
	return eventOf("modify", value.ObjectOf(bson.End(b, at)))
}

// shardDescription returns what the event of a shardCollection says.
func shardDescription(body value.Value) value.Value {
	at, b := bson.Begin(nil)
	for it := body.Iter(); it.Next(); {
		switch name := string(it.Key()); name {
		case "key", "shardKey":
			b = value.AppendElement(b, "shardKey", it.Value())
		case "unique", "numInitialChunks":
			b = append(b, it.Element()...)
		}
	}
	return value.ObjectOf(bson.End(b, at))
}

// imagesOf reads changeStreamPreAndPostImages.
func imagesOf(command string, body value.Value) (enabled value.Value, err error) {
	v := args.Given(body, "changeStreamPreAndPostImages")
	if !v.IsDefined() {
		return v, nil
	}
	where := command + ".changeStreamPreAndPostImages"
	if v.Kind() != value.Object {
		return value.Undef(), args.Want(false, command, []byte("changeStreamPreAndPostImages"), v, "type 'object'")
	}
	if err := (args.Set{"enabled": args.SafeBool}).Check(where, v); err != nil {
		return value.Undef(), err
	}
	if !v.Get("enabled").IsDefined() {
		return value.Undef(), merr.New(merr.MissingField, "BSON field '%s.enabled' is missing but a required "+
			"field", where)
	}
	return value.BoolOf(args.Flag(v, "enabled", false)), nil
}
