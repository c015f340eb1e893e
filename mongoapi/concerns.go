package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// There is a single member, and it shows only durable data. So all read concern levels are equivalent, except snapshot,
// which is a guarantee about several reads.

// readConcern is the argument readConcern.
type readConcern struct {
	given bool
	level string
	after uint64 // the cluster time after which the command reads; 0 = any
	at    uint64 // the cluster time whose state it reads; 0 = the present one
}

// checkReadConcern checks the argument readConcern.
func checkReadConcern(v value.Value) (c readConcern, err error) {
	if v.Kind() != value.Object {
		return c, merr.New(merr.FailedToParse, "readConcern field should be an object")
	}
	c.level = "local"
	for it := v.Iter(); it.Next(); {
		switch key := string(it.Key()); key {
		case "level":
			if err := checkLevel(it.Value()); err != nil {
				return c, err
			}
			c.level = it.Value().Str()
		case "afterClusterTime", "atClusterTime":
			if it.Value().Kind() != value.Timestamp {
				return c, wrongConcern(key, "timestamp", it.Value())
			}
			t := it.Value().Raw64()
			if t == 0 {
				return c, merr.New(merr.InvalidOptions, "%s cannot be a null timestamp", key)
			}
			if key == "atClusterTime" {
				c.at = t
			} else {
				c.after = t
			}
		case "afterOpTime", "provenance":
		default:
			return c, merr.New(merr.InvalidOptions, "Unrecognized option in readConcern: %s", key)
		}
		c.given = true
	}
	switch {
	case c.at != 0 && c.level != "snapshot":
		return c, merr.New(merr.InvalidOptions, "atClusterTime field can be set only if level is equal to snapshot")
	case c.at != 0 && c.after != 0:
		return c, merr.New(merr.InvalidOptions, "Specifying a timestamp for afterClusterTime and atClusterTime is not "+
			"allowed")
	case c.after != 0 && c.level != "local" && c.level != "majority" && c.level != "snapshot":
		return c, merr.New(merr.InvalidOptions,
			"afterClusterTime field can be set only if level is equal to local, majority, or snapshot")
	}
	return c, nil
}

func checkLevel(v value.Value) error {
	if v.Kind() != value.String {
		return wrongConcern("level", "string", v)
	}
	switch v.Str() {
	case "local", "available", "majority", "linearizable", "snapshot":
		return nil
	}
	return merr.New(merr.FailedToParse,
		"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
}

func wrongConcern(name, wanted string, v value.Value) error {
	return merr.New(merr.TypeMismatch, "%q had the wrong type. Expected %s, found %s", name, wanted, expr.TypeName(v))
}

// maxMembers is the largest number of members of a replica set.
const maxMembers = 50

// checkWriteConcern checks the argument writeConcern. For one that is valid but can't be satisfied it returns unmet:
// the write is done, and the reply reports it.
func checkWriteConcern(v value.Value) (unmet *merr.Error, err error) {
	if v.Kind() != value.Object {
		return nil, wrongConcern("writeConcern", "object", v)
	}
	for it := v.Iter(); it.Next(); {
		x := it.Value()
		switch key := string(it.Key()); key {
		case "w":
			if unmet, err = checkW(x); err != nil {
				return nil, err
			}
		case "j", "fsync":
			err = safeBool.check("writeConcern", it.Key(), x)
		case "wtimeout":
			err = numberArg.check("writeConcern", it.Key(), x)
		case "provenance", "getLastError", "wOpTime", "wElectionId":
		default:
			return nil, unknownField("writeConcern", it.Key())
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

// appendUnmet appends the writeConcernError of a reply.
func appendUnmet(dst []byte, e *merr.Error) []byte {
	if e == nil {
		return dst
	}
	at, dst := bson.BeginObject(dst, "writeConcernError")
	dst = bson.AppendInt32(dst, "code", e.Code)
	dst = bson.AppendString(dst, "codeName", e.CodeName())
	dst = bson.AppendString(dst, "errmsg", e.Msg)
	return bson.End(dst, at)
}
