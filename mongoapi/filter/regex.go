package filter

import (
	"bytes"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

type regex struct {
	test   func(v value.Value) bool
	prefix string // every matching string begins with it
}

// regexOp compiles {$regex: pattern or regex, $options: text}.
func (c *compiler) regexOp(path string, arg, all value.Value, _ int) (node, error) {
	options := all.Get("$options")
	if _, set := splitRegex(arg); arg.Kind() == value.Regex && set != "" && options.Kind() == value.String {
		code := int32(51075)
		if it := all.Iter(); it.Next() && string(it.Key()) == "$options" {
			code = 51074
		}
		return nil, merr.New(code, "options set in both $regex and $options")
	}
	return c.regex(path, arg, options)
}

func (c *compiler) regex(path string, arg, options value.Value) (node, error) {
	re, err := c.compileRegex(arg, options)
	if err != nil {
		return nil, err
	}
	n := newLeaf(path, true, re.test)
	n.sarg = sarg{kind: sargRegex, prefix: re.prefix}
	return n, nil
}

// splitRegex returns the pattern and the options of a Regex value.
func splitRegex(v value.Value) (pattern, options string) {
	p := bytes.SplitN(v.Bytes(), []byte{0}, 3)
	if len(p) < 2 {
		return "", ""
	}
	return string(p[0]), string(p[1])
}

func (c *compiler) compileRegex(arg, options value.Value) (regex, error) {
	var pattern, opts string
	switch arg.Kind() {
	case value.Regex:
		pattern, opts = splitRegex(arg)
	case value.String:
		pattern = arg.Str()
	default:
		return regex{}, merr.New(merr.BadValue, "$regex has to be a string")
	}
	if options.IsDefined() {
		if options.Kind() != value.String {
			return regex{}, merr.New(merr.BadValue, "$options has to be a string")
		}
		opts = options.Str()
	}
	re, prefix, err := expr.Regexp(pattern, opts)
	if err != nil {
		return regex{}, err
	}
	return regex{prefix: prefix, test: func(v value.Value) bool {
		switch v.Kind() {
		case value.String, value.Symbol:
			return c.opts.Run.Match(re, v.Bytes())
		case value.Regex:
			p, o := splitRegex(v)
			return p == pattern && o == opts
		}
		return false
	}}, nil
}
