package update

import (
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// applyFn applies an operator at a path without positional components.
type applyFn func(root *node, path []string, c *Context) error

// ops is the registry of update operators. Each entry compiles `{$op: {path: arg}}`.
var ops map[string]func(path string, arg value.Value, o Options) (applyFn, error)

func init() {
	ops = map[string]func(path string, arg value.Value, o Options) (applyFn, error){
		"$addToSet":    addToSet,
		"$bit":         bit,
		"$currentDate": currentDate,
		"$inc":         arithmetic("$inc", num.Add),
		"$max":         extreme(1),
		"$min":         extreme(-1),
		"$mul":         arithmetic("$mul", num.Mul),
		"$pop":         pop,
		"$pull":        pull,
		"$pullAll":     pullAll,
		"$push":        push,
		"$rename":      rename,
		"$set":         set,
		"$setOnInsert": set,
		"$unset":       unset,
	}
}

func set(_ string, arg value.Value, _ Options) (applyFn, error) {
	return func(root *node, path []string, _ *Context) error { return root.put(path, arg) }, nil
}

func unset(string, value.Value, Options) (applyFn, error) {
	return func(root *node, path []string, _ *Context) error {
		root.find(path).remove()
		return nil
	}, nil
}

//go:noinline // each caller would get its own copy of the closure
func arithmetic(name string, op num.Op) func(string, value.Value, Options) (applyFn, error) {
	return func(path string, arg value.Value, _ Options) (applyFn, error) {
		verb := map[string]string{"$inc": "increment", "$mul": "multiply"}[name]
		if !arg.IsNumber() {
			return nil, merr.New(merr.TypeMismatch, "Cannot %s with non-numeric argument: {%s: %s}", verb,
				path, merr.Show(arg))
		}
		return func(root *node, path []string, _ *Context) error {
			p := root.find(path)
			if p.at == nil {
				if op == num.Mul {
					zero, _ := num.Do(num.Mul, arg, value.Int32Of(0))
					return p.put(zero)
				}
				return p.put(arg)
			}
			old := p.at.value()
			if !old.IsNumber() {
				return merr.New(merr.TypeMismatch, "Cannot apply %s to a value of non-numeric type. {%s} has the "+
					"field '%s' of non-numeric type %s",
					name, idText(root), last(path), expr.TypeName(old))
			}
			v, ok := num.Do(op, old, arg)
			if !ok {
				return merr.New(merr.BadValue, "Failed to apply %s operations to current value (%s) for document {%s}",
					name, merr.Show(old), idText(root))
			}
			return p.put(v)
		}, nil
	}
}

func last(path []string) string { return path[len(path)-1] }

// idText returns the document's `_id` for messages.
func idText(root *node) string {
	if id := root.child("_id"); id != nil {
		return "_id: " + merr.Show(id.value())
	}
	return "no id"
}

// extreme makes $max with 1 and $min with -1.
func extreme(sign int) func(string, value.Value, Options) (applyFn, error) {
	return func(_ string, arg value.Value, _ Options) (applyFn, error) {
		return func(root *node, path []string, c *Context) error {
			p := root.find(path)
			if p.at != nil && sign*c.Env.Run.Collation().Compare(arg, p.at.value()) <= 0 {
				return nil
			}
			return p.put(arg)
		}, nil
	}
}

func rename(path string, arg value.Value, _ Options) (applyFn, error) {
	if arg.Kind() != value.String {
		return nil, merr.New(merr.BadValue, "The 'to' field for $rename must be a string: %s: %s", path, merr.Show(arg))
	}
	if strings.IndexByte(arg.Str(), 0) >= 0 {
		return nil, merr.New(merr.BadValue, "The 'to' field for $rename cannot contain an embedded null byte")
	}
	to := strings.Split(arg.Str(), ".")
	for _, p := range []string{path, arg.Str()} {
		for _, s := range strings.Split(p, ".") {
			if strings.HasPrefix(s, "$") {
				return nil, merr.New(merr.BadValue, "The source and destination field for $rename may not be "+
					"dynamic: %s", p)
			}
		}
	}
	if path == arg.Str() {
		return nil, merr.New(merr.BadValue, "The source and target field for $rename must differ: %s: \"%s\"",
			path, path)
	}
	if from := strings.Split(path, "."); isPrefix(from, to) || isPrefix(to, from) {
		return nil, merr.New(merr.BadValue, "The source and target field for $rename must not be on the same path: "+
			"%s: \"%s\"", path, arg.Str())
	}
	return func(root *node, from []string, _ *Context) error {
		p := root.find(from)
		if p.at == nil {
			return p.missing(from)
		}
		if list := root.arrayAbove(from); list != nil {
			return merr.New(merr.BadValue, "The source field cannot be an array element, '%s' in doc with %s "+
				"has an array field called '%s'", path, idText(root), list.key)
		}
		v := p.at.value()
		if list := root.arrayAbove(to); list != nil {
			return merr.New(merr.BadValue, "The destination field cannot be an array element, '%s' in doc with %s "+
				"has an array field called '%s'", arg.Str(), idText(root), list.key)
		}
		p.remove()
		return root.put(to, v)
	}, nil
}

func currentDate(path string, arg value.Value, _ Options) (applyFn, error) {
	stamp := false
	switch arg.Kind() {
	case value.Bool:
	case value.Object:
		t := arg.Get("$type").Str()
		for it := arg.Iter(); it.Next(); {
			if string(it.Key()) != "$type" {
				return nil, merr.New(merr.BadValue, "Unrecognized $currentDate option: %s", it.Key())
			}
		}
		if arg.Len() != 1 || t != "date" && t != "timestamp" {
			return nil, merr.New(merr.BadValue, "The '$type' string field is required to be 'date' or 'timestamp': "+
				"{$currentDate: {field : {$type: 'date'}}}")
		}
		stamp = t == "timestamp"
	default:
		return nil, merr.New(merr.BadValue, "%s is not valid type for $currentDate. Please use a boolean ('true') "+
			"or a $type expression ({$type: 'timestamp/date'}).", expr.TypeName(arg))
	}
	return func(root *node, path []string, c *Context) error {
		if stamp {
			return root.put(path, value.TimestampOf(c.Stamp()))
		}
		return root.put(path, value.DateOf(c.Env.NowMS, 0))
	}, nil
}

func bit(path string, arg value.Value, _ Options) (applyFn, error) {
	if arg.Kind() != value.Object || arg.Len() == 0 {
		return nil, merr.New(merr.BadValue, "The $bit modifier is not compatible with a %s. You must pass in an "+
			"embedded document: {$bit: {field: {and/or/xor: #}}", expr.TypeName(arg))
	}
	for it := arg.Iter(); it.Next(); {
		switch string(it.Key()) {
		case "and", "or", "xor":
		default:
			return nil, merr.New(merr.BadValue, "The $bit modifier only supports 'and', 'or', and 'xor', not '%s' "+
				"which is an unknown operator: {%s: %s}", it.Key(), it.Key(), merr.Show(it.Value()))
		}
		if k := it.Value().Kind(); k != value.Int32 && k != value.Int64 {
			return nil, merr.New(merr.BadValue, "The $bit modifier field must be an Integer(32/64 bit); a '%s' is "+
				"not supported here: {%s: %s}", expr.TypeName(it.Value()), it.Key(), merr.Show(it.Value()))
		}
	}
	return func(root *node, path []string, _ *Context) error {
		p := root.find(path)
		cur := value.Int32Of(0)
		if p.at != nil {
			cur = p.at.value()
			if k := cur.Kind(); k != value.Int32 && k != value.Int64 {
				return merr.New(merr.BadValue, "Cannot apply $bit to a value of non-integral type.%s has the field "+
					"%s of non-integer type %s", idText(root), last(path), expr.TypeName(cur))
			}
		}
		n, long := cur.Int(), cur.Kind() == value.Int64
		for it := arg.Iter(); it.Next(); {
			m := it.Value().Int()
			long = long || it.Value().Kind() == value.Int64
			switch string(it.Key()) {
			case "and":
				n &= m
			case "or":
				n |= m
			case "xor":
				n ^= m
			}
		}
		if long {
			return p.put(value.Int64Of(n))
		}
		return p.put(value.Int32Of(int32(n)))
	}, nil
}
