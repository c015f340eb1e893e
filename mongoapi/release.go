package mongoapi

import (
	"slices"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// A release of MongoDB is what the server announces to be. A driver decides by the wire version which commands it
// sends: from 25 on it has a bulkWrite of the client, which is the command bulkWrite, and sends the sort of an update.
// The server executes that command in any case. It takes the sort only if it announces it, because a server of
// an earlier release refuses it (decision 77).
type release struct {
	feature string // the feature compatibility version
	numbers []int32
	wire    int32
	sorts   bool // statements of an update may have a sort
	settled bool // all operators of expressions are in the Stable API
	later   bool // operators do what they do after 7.0
}

// DefaultRelease is what the server announces without another choice.
const DefaultRelease = "7.0"

var releases = map[string]release{
	"7.0": {feature: "7.0", numbers: []int32{7, 0, 0, 0}, wire: 21},
	"8.0": {feature: "8.0", numbers: []int32{8, 0, 0, 0}, wire: 25, sorts: true, settled: true, later: true},
}

// Releases returns the releases that Options may name.
func Releases() []string {
	var out []string
	for name := range releases {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// version returns the release's version with three numbers.
func (v release) version() string { return v.feature + ".0" }

// appendNumbers appends the version as an array.
func (v release) appendNumbers(dst []byte, name string) []byte {
	var out []value.Value
	for _, n := range v.numbers {
		out = append(out, value.Int32Of(n))
	}
	return value.AppendElement(dst, name, value.MakeArray(out))
}

// appendFeature appends the feature compatibility version.
func (v release) appendFeature(dst []byte, name string) []byte {
	return bson.AppendString(dst, name, v.feature)
}
