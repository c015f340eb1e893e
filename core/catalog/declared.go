package catalog

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/orrerydb/orrery/core/collate"
)

// Declared is an index that an API has declared, and that the store enforces: a unique one, or one that ends the life
// of items at a date. What only makes queries faster isn't declared: see Spec.IndexingPolicy.
//
// A path goes through arrays: the value of the path a.b in {a: [{b: 1}, {b: 2}]} is both 1 and 2.
//
// Example: {Name: "mail_1", Paths: [["mail"]], Unique: true} refuses a second item with the same mail, in whatever
// partition. {Name: "at_1", Paths: [["at"]], After: 60} removes an item 60 seconds after the earliest date in its field
// at.
type Declared struct {
	Name   string     `json:"name"`             // for messages
	Paths  [][]string `json:"paths"`            // names of stored fields
	Unique bool       `json:"unique,omitempty"` // no two items have equal values; a missing value counts as null
	Sparse bool       `json:"sparse,omitempty"` // items without any of the paths don't count
	After  *int32     `json:"after,omitempty"`  // seconds after the earliest date at the only path; nil: items stay
	Only   *Condition `json:"only,omitempty"`   // the index is only for items that fulfil it; nil: for all

	// Collation says which strings are equal; nil: those of the same bytes.
	Collation *collate.Options `json:"collation,omitempty"`
	// CollatedOnly says that Only compares strings by Collation too. Definitions of earlier versions compare bytes
	// there.
	CollatedOnly bool `json:"collatedOnly,omitempty"`

	// Num is the number of a unique index in the keys of its entries, and State says whether all items have them. The
	// store chooses both.
	Num   uint32     `json:"num,omitempty"`
	State IndexState `json:"state,omitempty"`
}

// IndexState is the state of the entries of a unique Declared.
type IndexState uint8

// The states of an index.
const (
	IndexReady    IndexState = iota // every item has its entries
	IndexBuilding                   // writers make entries, and items that were there before are getting theirs
	IndexDropping                   // nobody makes entries; those that exist are being removed
)

// Condition is a condition on an item: all of All and one of Any hold, or if both are empty, what Op says about the
// values at Path.
type Condition struct {
	All  []Condition `json:"all,omitempty"`
	Any  []Condition `json:"any,omitempty"`
	Path []string    `json:"path,omitempty"`
	Op   string      `json:"op,omitempty"` // one of the Op constants

	Value []byte `json:"value,omitempty"` // of a comparison, as value.AppendTyped writes it
	Types []byte `json:"types,omitempty"` // of OpType: BSON types
}

// The operations of a Condition. A comparison holds if one value at the path has the kind of Value and compares with it
// so; arrays count as themselves and as each of their elements. A missing value equals null.
const (
	OpExists         = "exists"
	OpType           = "type"
	OpEqual          = "="
	OpLess           = "<"
	OpLessOrEqual    = "<="
	OpGreater        = ">"
	OpGreaterOrEqual = ">="
)

// Same reports whether two indexes are the same but for their number and state.
func (d Declared) Same(o Declared) bool {
	d.Num, d.State, o.Num, o.State = 0, 0, 0, 0
	return reflect.DeepEqual(d, o)
}

// clone returns a deep copy.
func (d Declared) clone() Declared {
	d.Paths = slices.Clone(d.Paths)
	for i := range d.Paths {
		d.Paths[i] = slices.Clone(d.Paths[i])
	}
	if d.After != nil {
		after := *d.After
		d.After = &after
	}
	if d.Collation != nil {
		c := *d.Collation
		d.Collation = &c
	}
	if d.Only != nil {
		only := d.Only.clone()
		d.Only = &only
	}
	return d
}

func (c Condition) clone() Condition {
	c.Path, c.Value, c.Types = slices.Clone(c.Path), bytes.Clone(c.Value), bytes.Clone(c.Types)
	for _, list := range []*[]Condition{&c.All, &c.Any} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i] = (*list)[i].clone()
		}
	}
	return c
}

// expires reports whether a declared index ends the life of items, or has entries to be removed.
func (s *Spec) expires() bool {
	return slices.ContainsFunc(s.Declared, func(d Declared) bool { return d.After != nil || d.State != IndexReady })
}
