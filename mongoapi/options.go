package mongoapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/indexes"
)

// optionsProperty is the container's property with the options that a collection was created with: a BSON document, as
// listCollections shows it. A collection without options has none.
const optionsProperty = "mongo.options"

// option returns an option of the collection, Undefined if it doesn't have it.
func (k *coll) option(name string) value.Value { return optionsIn(k.opts).Get(name) }

// optionsIn returns stored options as a document.
func optionsIn(b []byte) value.Value {
	if len(b) < 5 {
		return value.Undef()
	}
	return value.ObjectOf(b)
}

// setOption changes an option of a spec; Undefined removes it.
func setOption(s *core.ContainerSpec, name string, v value.Value) {
	at, b := bson.Begin(nil)
	found := false
	for it := optionsIn(s.Properties[optionsProperty]).Iter(); it.Next(); {
		switch {
		case string(it.Key()) != name:
			b = append(b, it.Element()...)
		case v.IsDefined():
			b, found = value.AppendElement(b, name, v), true
		}
	}
	if v.IsDefined() && !found {
		b = value.AppendElement(b, name, v)
	}
	if s.Properties == nil {
		s.Properties = map[string][]byte{}
	}
	if b = bson.End(b, at); len(b) > len(bson.Empty) {
		s.Properties[optionsProperty] = b
	} else {
		delete(s.Properties, optionsProperty)
	}
	followOptions(s)
}

// setOptions gives a new container the options of a collection; nil = none.
func setOptions(s *core.ContainerSpec, opts []byte) {
	if opts == nil {
		return
	}
	s.Properties = map[string][]byte{optionsProperty: opts}
	s.Declared = declaredByOptions(s)
	s.IndexingPolicy = indexes.Policy(s.IndexingPolicy, nil, collatedIDs(s))
	followOptions(s)
}

// followOptions sets what the store does for options.
func followOptions(s *core.ContainerSpec) {
	o := optionsIn(s.Properties[optionsProperty])
	s.Images, s.Capped = false, nil
	if !o.IsDefined() {
		return
	}
	s.Images = o.Get("changeStreamPreAndPostImages").Get("enabled").Bool()
	if o.Get("capped").Bool() {
		s.Capped = &core.Capped{Bytes: o.Get("size").Int(), Items: o.Get("max").Int()}
	}
}

func optionsOf(c core.Definition) value.Value { return optionsIn(c.Spec().Properties[optionsProperty]) }

// kindOf returns the type of a collection with these options, given as elements, in listCollections.
func kindOf(options []byte) string {
	at, b := bson.Begin(nil)
	if value.ObjectOf(bson.End(append(b, options...), at)).Get("timeseries").IsDefined() {
		return "timeseries"
	}
	return "collection"
}
