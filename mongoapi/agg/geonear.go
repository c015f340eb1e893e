package agg

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// leadGeoNear compiles $geoNear. The condition and the order are the lead's: its filter has the place (filter.Near),
// and a source gives documents in the order of distances. The stage itself adds the distance to each document.
//
// Example: {near: {type: "Point", coordinates: [0, 0]}, distanceField: "d", query: {open: true}, spherical: true} with
// an index on loc is the filter {$and: [{loc: {$nearSphere: ..}}, {open: true}]} and a stage that sets d.
func leadGeoNear(c *compiler, arg value.Value) (bool, error) {
	if arg.Kind() != value.Object {
		return false, merr.New(merr.TypeMismatch, "$geoNear must be an object, but found: %s", expr.TypeName(arg))
	}
	g, err := geoNearArgs(arg)
	if err != nil {
		return false, err
	}
	near, err := c.constant(arg.Get("near"))
	if err != nil {
		return false, err
	}
	if near.Kind() != value.Array && near.Kind() != value.Object {
		return false, merr.New(5860402, "$geoNear requires that 'near' is an array or an object, but found %s",
			expr.TypeName(near))
	}
	key := arg.Get("key").Str()
	if key == "" {
		if c.o.Places == nil {
			return false, merr.New(merr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
		}
		if key, err = c.o.Places(c.o.Coll); err != nil {
			return false, err
		}
	}
	op := "$near"
	if expr.Truthy(arg.Get("spherical")) {
		op = "$nearSphere"
	}
	c.out.Lead.Filter, err = filter.CompileNear(arg.Get("query"), key, op, near, arg.Get("minDistance"),
		arg.Get("maxDistance"), filter.Options{Scope: c.o.Scope, Run: c.o.Run, NoNear: true})
	if err != nil {
		return false, err
	}
	place := c.out.Lead.Filter.Near()
	c.out.stages = append(c.out.stages, func(x *Exec, src Iter) (Iter, error) {
		return &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			dist, loc, _ := place.Distance(d)
			if g.distance != nil {
				d = setPath(d, g.distance, value.DoubleOf(dist*g.times))
			}
			if g.locs != nil {
				d = setPath(d, g.locs, loc)
			}
			return d, nil
		}}, nil
	})
	return true, nil
}

// geoNear is compiled as a lead, because it is the first stage.
func geoNear(*compiler, value.Value) (stage, error) {
	return nil, merr.New(40602, "$geoNear is only valid as the first stage in a pipeline")
}

// constant returns the value of an expression without a document.
func (c *compiler) constant(v value.Value) (value.Value, error) {
	x, err := expr.Compile(v, c.o.Scope)
	if err != nil {
		return v, err
	}
	return x(&expr.Env{})
}

// geoNearSpec has the fields that $geoNear adds.
type geoNearSpec struct {
	distance, locs []string
	times          float64
}

func geoNearArgs(arg value.Value) (g geoNearSpec, err error) {
	g.times = 1
	for it := arg.Iter(); it.Next(); {
		v := it.Value()
		switch name := string(it.Key()); name {
		case "near", "spherical", "uniqueDocs":
		case "distanceField", "includeLocs":
			if v.Kind() != value.String {
				code := int32(16606)
				if name == "includeLocs" {
					code = 16607
				}
				return g, merr.New(code, "$geoNear requires that '%s' option is a String", name)
			}
			path, err := expr.FieldPath(v.Str())
			if err != nil {
				return g, err
			}
			if name == "includeLocs" {
				g.locs = path
			} else {
				g.distance = path
			}
		case "distanceMultiplier", "minDistance", "maxDistance":
			if !v.IsNumber() {
				return g, merr.New(merr.TypeMismatch, "$geoNear requires that '%s' option is a number, but found %s",
					name, expr.TypeName(v))
			}
			if f := num.ToFloat(v); name == "distanceMultiplier" {
				if g.times = f; !(f >= 0) {
					return g, merr.New(merr.BadValue, "$geoNear parameter 'distanceMultiplier' must be non-negative")
				}
			}
		case "query":
			if v.Kind() != value.Object {
				return g, merr.New(merr.TypeMismatch, "$geoNear parameter 'query' must be an object, but found %s",
					expr.TypeName(v))
			}
		case "key":
			switch {
			case v.Kind() != value.String:
				return g, merr.New(merr.TypeMismatch, "$geoNear parameter 'key' must be of type string but found "+
					"type: %s", expr.TypeName(v))
			case v.Str() == "":
				return g, merr.New(merr.BadValue, "$geoNear parameter 'key' cannot be the empty string")
			}
		case "collation":
			return g, merr.New(40227, "$geoNear does not accept the 'collation' parameter. Instead, specify a "+
				"collation for the entire aggregation command.")
		case "limit":
			return g, merr.New(50858, "$geoNear no longer supports the 'limit' parameter. Use a $limit stage instead.")
		case "num":
			return g, merr.New(50857, "$geoNear no longer supports the 'num' parameter. Use a $limit stage instead.")
		case "start":
			return g, merr.New(50856, "$geoNear no longer supports the 'start' argument.")
		default:
			return g, merr.New(merr.BadValue, "$geoNear has an unknown argument: %s", name)
		}
	}
	if !arg.Get("near").IsDefined() {
		return g, merr.New(5860400, "$geoNear requires a 'near' argument")
	}
	if g.distance == nil {
		return g, merr.New(16606, "$geoNear requires a 'distanceField' option as a String")
	}
	return g, nil
}

// byDistance sorts documents by their distance from the place of a filter.
func byDistance(x *Exec, src Iter, n *filter.Near) Iter {
	keyed := &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
		dist, _, _ := n.Distance(d)
		return keyedRow(value.DoubleOf(dist), d), nil
	}}
	return &mapIter{sorted(x, keyed, "$geoNear", keyOrder), x.Env.Run, func(row value.Value) (value.Value, error) {
		return row.Get("d"), nil
	}}
}
