package agg

import (
	"math"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// setPath returns doc with the value at a path of object names; Undefined removes it.
func setPath(doc value.Value, path []string, v value.Value) value.Value {
	if len(path) == 1 {
		return expr.SetTop(doc, path[0], v)
	}
	inner := doc.Get(path[0])
	if inner.Kind() != value.Object {
		if !v.IsDefined() {
			return doc
		}
		inner = value.ObjectOf(bson.Empty)
	}
	return expr.SetTop(doc, path[0], setPath(inner, path[1:], v))
}

func getPath(doc value.Value, path []string) value.Value {
	for _, p := range path {
		doc = doc.Get(p)
	}
	return doc
}

type unwindIter struct {
	src     Iter
	h       *hold // of doc and the array
	path    []string
	index   []string
	keep    bool
	only    names       // the fields of the documents that the stages behind read; nil: all
	doc     value.Value // the document with null in place of the array
	it      value.Iter  // the array
	n       int64
	running bool
}

func unwind(c *compiler, arg value.Value) (stage, error) {
	u := unwindIter{only: readBehind(c.rest)}
	pathArg := arg
	if arg.Kind() == value.Object {
		for it := arg.Iter(); it.Next(); {
			switch string(it.Key()) {
			case "path":
			case "preserveNullAndEmptyArrays":
				if it.Value().Kind() != value.Bool {
					return nil, merr.New(28809, "expected a boolean for the preserveNullAndEmptyArrays option to "+
						"$unwind stage, got %s", expr.TypeName(it.Value()))
				}
				u.keep = it.Value().Bool()
			case "includeArrayIndex":
				s := it.Value().Str()
				if s == "" {
					return nil, merr.New(28810, "expected a non-empty string for the includeArrayIndex  option to "+
						"$unwind stage")
				}
				if s[0] == '$' {
					return nil, merr.New(28822, "includeArrayIndex option to $unwind stage should not be prefixed "+
						"with a '$': %s", s)
				}
				var err error
				if u.index, err = expr.FieldPath(s); err != nil {
					return nil, err
				}
			default:
				return nil, merr.New(28811, "unrecognized option to $unwind stage: %s", it.Key())
			}
		}
		if pathArg = arg.Get("path"); !pathArg.IsDefined() {
			return nil, merr.New(28812, "no path specified to $unwind stage")
		}
	}
	if pathArg.Kind() != value.String {
		return nil, merr.New(15981, "expected either a string or an object as specification for $unwind stage, got %s",
			expr.TypeName(pathArg))
	}
	p := pathArg.Str()
	if !strings.HasPrefix(p, "$") {
		return nil, merr.New(28818, "path option to $unwind stage should be prefixed with a '$': %s", p)
	}
	var err error
	if u.path, err = expr.FieldPath(p[1:]); err != nil {
		return nil, err
	}
	return func(x *Exec, src Iter) (Iter, error) {
		n := u
		n.src, n.h = src, x.hold("$unwind")
		return &n, nil
	}, nil
}

func (u *unwindIter) Next() (value.Value, bool, error) {
	for {
		if u.running {
			if u.it.Next() {
				u.n++
				return u.emit(u.it.Value(), value.Int64Of(u.n-1)), true, nil
			}
			u.running = false
		}
		d, ok, err := u.src.Next()
		if !ok || err != nil {
			return d, ok, err
		}
		u.doc = d
		v := getPath(d, u.path)
		switch v.Kind() {
		case value.Array:
			if v.Len() > 0 {
				// The elements are returned one at a time. The source may release the document before the last one, so
				// the array is copied, and what each of them gets of the document.
				if err := u.h.one(d); err != nil {
					return d, false, err
				}
				u.doc = setPath(u.only.of(d), u.path, value.NullValue())
				u.it, u.running, u.n = v.Clone().Iter(), true, 0
				continue
			}
			if u.keep {
				return u.emit(value.Undef(), value.NullValue()), true, nil
			}
		case value.Null, value.Undefined:
			if u.keep {
				return u.emit(v, value.NullValue()), true, nil
			}
		default:
			return u.emit(v, value.NullValue()), true, nil
		}
	}
}

func (u *unwindIter) emit(v, index value.Value) value.Value {
	d := setPath(u.doc, u.path, v)
	if u.index != nil {
		d = setPath(d, u.index, index)
	}
	return d
}

func (u *unwindIter) Close() {
	u.src.Close()
	u.h.release()
}

// RunAll is Run for a src to which Lead hasn't been applied.
func (p *Pipeline) RunAll(x *Exec, src Iter) (Iter, error) {
	if p.source == nil {
		src = p.Lead.apply(x, src)
	}
	return p.Run(x, src)
}

func (l *Lead) apply(x *Exec, src Iter) Iter {
	if l.Filter != nil && !l.Filter.All() {
		inner, f := src, l.Filter
		src = &mapIter{inner, x.Env.Run, func(d value.Value) (value.Value, error) {
			ok, err := f.Match(x.Env, d)
			if !ok {
				return value.Undef(), err
			}
			return d, err
		}}
	}
	switch {
	case l.Sort != nil:
		src = firstSorted(x, src, "$sort", l.Sort, first(l.Skip, l.Limit))
	case l.Filter != nil && l.Filter.Near() != nil:
		src = byDistance(x, src, l.Filter.Near())
	}
	if l.Skip > 0 {
		left := l.Skip
		src = &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			if left > 0 {
				left--
				return value.Undef(), nil
			}
			return d, nil
		}}
	}
	if l.Limit > 0 {
		src = &limitIter{src, l.Limit}
	}
	return src
}

// first returns how many of the first documents are behind a $skip and in a $limit; 0: all.
func first(skip, limit int64) int64 {
	if limit == 0 || skip > math.MaxInt64-limit {
		return 0
	}
	return skip + limit
}

func sample(_ *compiler, arg value.Value) (stage, error) {
	n, ok := num.ToInt64(arg.Get("size"), false)
	if arg.Kind() != value.Object || arg.Len() != 1 || !ok {
		return nil, merr.New(28746, "$sample stage must specify a size that is a number")
	}
	if n <= 0 {
		return nil, merr.New(28747, "size argument to $sample must be a positive integer")
	}
	return func(x *Exec, src Iter) (Iter, error) {
		return lazy(x, src, "$sample", func(src Iter, h *hold) ([]value.Value, error) {
			var out []value.Value
			for seen := int64(1); ; seen++ {
				d, ok, err := src.Next()
				if !ok || err != nil {
					return out, err
				}
				if int64(len(out)) < n {
					out = append(out, d.Clone())
					err = h.add(docSize(d))
				} else if i := int64(x.Env.Random() * float64(seen)); i < n {
					err = h.add(docSize(d) - docSize(out[i]))
					out[i] = d.Clone()
				}
				if err != nil {
					return nil, err
				}
			}
		}), nil
	}, nil
}

func documents(c *compiler, arg value.Value) (stage, error) {
	xp, err := expr.Compile(arg, c.o.Scope)
	if err != nil {
		return nil, err
	}
	c.out.source = func(x *Exec) (Iter, error) {
		v, err := xp(x.Env.With(value.ObjectOf(bson.Empty)))
		if err != nil {
			return nil, err
		}
		if v.Kind() != value.Array {
			return nil, merr.New(5858203, "an array is expected for $documents")
		}
		for it := v.Iter(); it.Next(); {
			if it.Value().Kind() != value.Object {
				return nil, merr.New(40228, "$documents needs an array of objects")
			}
		}
		return NewSlice(value.Elements(v)), nil
	}
	return nil, nil
}
