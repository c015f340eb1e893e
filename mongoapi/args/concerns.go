package args

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// There is a single member, and it shows only durable data. So all read concern levels are equivalent, except snapshot,
// which is a guarantee about several reads.

// ReadConcern is the argument readConcern.
type ReadConcern struct {
	Given bool
	Level string
	After uint64 // the cluster time after which the command reads; 0 = any
	At    uint64 // the cluster time whose state it reads; 0 = the present one
}

// ParseReadConcern reads the argument readConcern.
func ParseReadConcern(v value.Value) (c ReadConcern, err error) {
	if v.Kind() != value.Object {
		return c, merr.New(merr.FailedToParse, "readConcern field should be an object")
	}
	c.Level = "local"
	for it := v.Iter(); it.Next(); {
		switch key := string(it.Key()); key {
		case "level":
			if err := CheckLevel(it.Value()); err != nil {
				return c, err
			}
			c.Level = it.Value().Str()
		case "afterClusterTime", "atClusterTime":
			if it.Value().Kind() != value.Timestamp {
				return c, WrongType(key, "timestamp", it.Value())
			}
			t := it.Value().Raw64()
			if t == 0 {
				return c, merr.New(merr.InvalidOptions, "%s cannot be a null timestamp", key)
			}
			if key == "atClusterTime" {
				c.At = t
			} else {
				c.After = t
			}
		case "afterOpTime", "provenance":
		default:
			return c, merr.New(merr.InvalidOptions, "Unrecognized option in readConcern: %s", key)
		}
		c.Given = true
	}
	switch {
	case c.At != 0 && c.Level != "snapshot":
		return c, merr.New(merr.InvalidOptions, "atClusterTime field can be set only if level is equal to snapshot")
	case c.At != 0 && c.After != 0:
		return c, merr.New(merr.InvalidOptions, "Specifying a timestamp for afterClusterTime and atClusterTime is not "+
			"allowed")
	case c.After != 0 && c.Level != "local" && c.Level != "majority" && c.Level != "snapshot":
		return c, merr.New(merr.InvalidOptions,
			"afterClusterTime field can be set only if level is equal to local, majority, or snapshot")
	}
	return c, nil
}

// CheckLevel checks the level of a read concern.
func CheckLevel(v value.Value) error {
	if v.Kind() != value.String {
		return WrongType("level", "string", v)
	}
	switch v.Str() {
	case "local", "available", "majority", "linearizable", "snapshot":
		return nil
	}
	return merr.New(merr.FailedToParse,
		"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
}

// WrongType is the error for a wrong type of an option in a document, such as a concern: 14.
func WrongType(name, wanted string, v value.Value) error {
	return merr.New(merr.TypeMismatch, "%q had the wrong type. Expected %s, found %s", name, wanted, expr.TypeName(v))
}

// maxMembers is the largest number of members of a replica set.
const maxMembers = 50

// ParseWriteConcern checks the argument writeConcern. For one that is valid but can't be satisfied it returns unmet:
// the write is done, and the reply reports it.
func ParseWriteConcern(v value.Value) (unmet *merr.Error, err error) {
	if v.Kind() != value.Object {
		return nil, WrongType("writeConcern", "object", v)
	}
	for it := v.Iter(); it.Next(); {
		x := it.Value()
		switch key := string(it.Key()); key {
		case "w":
			if unmet, err = checkW(x); err != nil {
				return nil, err
			}
		case "j", "fsync":
			err = SafeBool.Check("writeConcern", it.Key(), x)
		case "wtimeout":
			err = Number.Check("writeConcern", it.Key(), x)
		case "provenance", "getLastError", "wOpTime", "wElectionId":
		default:
			return nil, Unknown("writeConcern", it.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	return unmet, nil
}

func checkW(v value.Value) (unmet *merr.Error, err error) {
	switch {
	case v.Kind() == value.Null:
	case v.IsNumber():
		n, ok := num.ToInt64(v, true)
		if !ok || n < 0 || n > maxMembers {
			return nil, merr.New(merr.FailedToParse, "w has to be a non-negative number and not greater than %d",
				maxMembers)
		}
		if n > 1 {
			return merr.New(merr.UnsatisfiableWriteConcern, "Not enough data-bearing nodes"), nil
		}
	case v.Kind() == value.String:
		if w := v.Str(); w != "majority" {
			return merr.New(merr.UnknownReplWriteConcern,
				"No write concern mode named '%s' found in replica set configuration", w), nil
		}
	case v.Kind() == value.Object: // tags of members; there are none
		return merr.New(merr.UnsatisfiableWriteConcern, "Not enough data-bearing nodes"), nil
	default:
		return nil, merr.New(merr.FailedToParse, "w has to be a number, string, or object; found: %s", expr.TypeName(v))
	}
	return nil, nil
}
