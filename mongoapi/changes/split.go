package changes

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// Split divides an event of more than most bytes into fragments, each with some of its fields, the field _id and
// splitEvent {fragment, of}. token returns the _id of the n-th fragment, from 1 on. It returns nil if a single field is
// too large. An event that isn't too large stays as it is.
//
// Example: an event with two documents of 12 MB each becomes {_id, splitEvent: {fragment: 1, of: 2}, operationType, ..,
// fullDocument} and {_id, splitEvent: {fragment: 2, of: 2}, fullDocumentBeforeChange}.
func Split(event value.Value, most int, token func(n int) value.Value) []value.Value {
	if len(event.Bytes()) <= most {
		return []value.Value{event}
	}
	const head = 128 // of _id and splitEvent
	var parts [][]byte
	var part []byte
	for it := event.Iter(); it.Next(); {
		if string(it.Key()) == "_id" {
			continue
		}
		e := it.Element()
		if len(e)+head > most {
			return nil
		}
		if len(part)+len(e)+head > most {
			parts, part = append(parts, part), nil
		}
		part = append(part, e...)
	}
	parts = append(parts, part)
	out := make([]value.Value, len(parts))
	for i, p := range parts {
		at, b := bson.Begin(make([]byte, 0, len(p)+head))
		b = value.AppendElement(b, "_id", token(i+1))
		sa, b := bson.BeginObject(b, "splitEvent")
		b = bson.AppendInt32(b, "fragment", int32(i+1))
		b = bson.End(bson.AppendInt32(b, "of", int32(len(parts))), sa)
		out[i] = value.ObjectOf(bson.End(append(b, p...), at))
	}
	return out
}
