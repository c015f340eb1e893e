// Package collation reads collations as MongoDB's commands write them, and writes them as commands list them.
//
// Example: {locale: "en", strength: 2} is read into the options of core/collate, with the locale's own defaults for the
// rest, and is listed with all its fields and the version of the tables.
package collation

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// version is the version of ICU whose tables core/collate has. It is that of MongoDB 7.0.
const version = "57.1"

// field reads one field of a collation into its options.
type field func(o *collate.Options, v value.Value) error

// fields are the fields besides locale.
var fields map[string]field

func init() {
	flagField := func(name string, to func(*collate.Options) *bool) field {
		return func(o *collate.Options, v value.Value) error {
			*to(o) = v.Bool()
			return args.Want(v.Kind() == value.Bool, "collation", []byte(name), v, "type 'bool'")
		}
	}
	choice := func(name string, to func(*collate.Options, string) bool) field {
		return func(o *collate.Options, v value.Value) error {
			if err := args.Want(v.Kind() == value.String, "collation", []byte(name), v, "type 'string'"); err != nil {
				return err
			}
			if !to(o, v.Str()) {
				return args.NotInEnum(v.Str(), "collation."+name)
			}
			return nil
		}
	}
	fields = map[string]field{
		"strength":        strengthField,
		"caseLevel":       flagField("caseLevel", func(o *collate.Options) *bool { return &o.CaseLevel }),
		"numericOrdering": flagField("numericOrdering", func(o *collate.Options) *bool { return &o.Numeric }),
		"normalization":   flagField("normalization", func(o *collate.Options) *bool { return &o.Normalization }),
		"backwards":       flagField("backwards", func(o *collate.Options) *bool { return &o.Backwards }),
		"caseFirst": choice("caseFirst", func(o *collate.Options, s string) bool {
			if o.CaseFirst = s; s == "off" {
				o.CaseFirst = ""
			}
			return s == "upper" || s == "lower" || s == "off"
		}),
		"alternate": choice("alternate", func(o *collate.Options, s string) bool {
			o.Shifted = s == "shifted"
			return o.Shifted || s == "non-ignorable"
		}),
		"maxVariable": choice("maxVariable", func(o *collate.Options, s string) bool {
			o.SpaceOnly = s == "space"
			return o.SpaceOnly || s == "punct"
		}),
		"version": func(_ *collate.Options, v value.Value) error {
			err := args.Want(v.Kind() == value.String, "collation", []byte("version"), v, "type 'string'")
			if err != nil {
				return err
			}
			if v.Str() != version {
				return merr.New(merr.IncompatibleCollation, "Requested collation version %s but the only available "+
					"collator version was %s.", v.Str(), version)
			}
			return nil
		},
	}
}

func strengthField(o *collate.Options, v value.Value) error {
	err := args.Want(v.IsNumber(), "collation", []byte("strength"), v, "types '[long, int, decimal, double]'")
	if err != nil {
		return err
	}
	n, ok := num.ToInt64(v, true)
	if !ok || n < 1 || n > 5 {
		return args.NotInEnum(merr.Show(value.IntOf(n)), "collation.strength")
	}
	o.Strength = int(n)
	return nil
}

// Parse reads a collation; nil for {locale: "simple"}, and for an absent or empty one.
func Parse(spec value.Value) (*collate.Collation, error) {
	if spec.Len() == 0 {
		return nil, nil
	}
	locale := args.Given(spec, "locale")
	switch {
	case !locale.IsDefined():
		return nil, merr.New(merr.MissingField, "BSON field 'collation.locale' is missing but a required field")
	case locale.Kind() != value.String:
		return nil, args.Want(false, "collation", []byte("locale"), locale, "type 'string'")
	case locale.Str() == "simple" && spec.Len() > 1:
		return nil, merr.New(merr.FailedToParse, "If locale=simple, no other fields should be present in: %s",
			merr.Show(spec))
	case locale.Str() == "simple":
		return nil, nil
	case locale.Str() == "":
		return nil, merr.New(merr.BadValue, "Field 'locale' cannot be the empty string in: %s", merr.Show(spec))
	}
	o, ok := collate.Defaults(locale.Str())
	if !ok {
		return nil, merr.New(merr.BadValue, "Field 'locale' is invalid in: %s", merr.Show(spec))
	}
	for it := spec.Iter(); it.Next(); {
		name := string(it.Key())
		if name == "locale" || it.Value().Kind() == value.Null {
			continue
		}
		read, ok := fields[name]
		if !ok {
			return nil, args.Unknown("collation", it.Key())
		}
		if err := read(&o, it.Value()); err != nil {
			return nil, err
		}
	}
	switch {
	case o.Backwards && o.Strength == 1:
		return nil, merr.New(merr.BadValue, "'backwards' is invalid with 'strength' of 1 in: %s",
			merr.Show(Doc(collate.New(o))))
	case o.CaseFirst != "" && !o.CaseLevel && o.Strength < 3:
		return nil, merr.New(merr.BadValue, "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater "+
			"than 2 in: %s", merr.Show(Doc(collate.New(o))))
	}
	return collate.New(o), nil
}

// Doc returns a collation as commands list it, Undefined for nil.
func Doc(c *collate.Collation) value.Value {
	if c == nil {
		return value.Undef()
	}
	or := func(v bool, yes, no string) string {
		if v {
			return yes
		}
		return no
	}
	o := c.Options()
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "locale", o.Locale)
	b = bson.AppendBool(b, "caseLevel", o.CaseLevel)
	b = bson.AppendString(b, "caseFirst", or(o.CaseFirst == "", "off", o.CaseFirst))
	b = bson.AppendInt32(b, "strength", int32(o.Strength))
	b = bson.AppendBool(b, "numericOrdering", o.Numeric)
	b = bson.AppendString(b, "alternate", or(o.Shifted, "shifted", "non-ignorable"))
	b = bson.AppendString(b, "maxVariable", or(o.SpaceOnly, "space", "punct"))
	b = bson.AppendBool(b, "normalization", o.Normalization)
	b = bson.AppendBool(b, "backwards", o.Backwards)
	return value.ObjectOf(bson.End(bson.AppendString(b, "version", version), at))
}
