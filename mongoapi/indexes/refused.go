package indexes

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Documents that declared indexes refuse. So that other collections don't pay for that check, the container's property
// refusingProperty tells that there are such indexes, and compoundsProperty has the compound ones.
const refusingProperty = "mongo.places"

// refusingKinds are the kinds of indexes that some documents can't have.
var refusingKinds = []string{"2d", "2dsphere", "text", "hashed"}

// Refuses reports whether some documents can't have an index.
func Refuses(spec value.Value) bool {
	return len(Places(spec, refusingKinds...)) > 0 || isCompound(spec)
}

// SetRefusing records which indexes of a container refuse documents: whether there are some of refusingKinds, and the
// compound ones.
func SetRefusing(s *core.ContainerSpec, specs []value.Value) {
	setCompounds(s, specs)
	delete(s.Properties, refusingProperty)
	for _, d := range specs {
		if len(Places(d, refusingKinds...)) > 0 {
			s.Properties[refusingProperty] = []byte{1}
		}
	}
}

// Check refuses a document that a declared index of the container can't have.
func Check(s *core.ContainerSpec, d value.Value) error {
	if len(s.Properties[refusingProperty]) > 0 {
		for _, spec := range In(s) {
			if err := checkKinds(spec, d); err != nil {
				return err
			}
		}
	}
	return checkCompounds(s, d)
}

// checkKinds refuses a document that an index on places, of texts or of hashes can't have.
func checkKinds(spec, d value.Value) error {
	for _, p := range Places(spec, "2dsphere") {
		if err := checkRound(d, p); err != nil {
			return err
		}
	}
	for _, p := range Places(spec, "2d") {
		lo, hi := planeOf(spec)
		if err := checkFlat(d, p, lo, hi); err != nil {
			return err
		}
	}
	if isText(spec) {
		if err := checkTexts(d, spec); err != nil {
			return err
		}
	}
	for _, p := range Places(spec, "hashed") {
		if filter.ThroughArray(d, p) {
			return merr.New(16766, "hashed indexes do not currently support array values")
		}
	}
	return nil
}
