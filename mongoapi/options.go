package mongoapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
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

func optionsOf(c core.Definition) value.Value { return optionsIn(c.Spec().Properties[optionsProperty]) }
