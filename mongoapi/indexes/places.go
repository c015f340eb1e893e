package indexes

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// Indexes on places: 2dsphere and 2d. Each of their paths becomes a spatial index of the container's policy, with the
// mark pairs, which indexes all of MongoDB's forms of places (core/geo.Shape). A 2d index has a box: min and max in
// both directions. Such indexes refuse documents whose places are malformed.

// spatialJSON is a spatial index of a policy.
type spatialJSON struct {
	Path  string          `json:"path"`
	Pairs bool            `json:"pairs,omitempty"`
	Types json.RawMessage `json:"types,omitempty"`
	Box   json.RawMessage `json:"boundingBox,omitempty"`
}

func (a spatialJSON) same(b spatialJSON) bool {
	return a.Path == b.Path && a.Pairs == b.Pairs && string(a.Box) == string(b.Box)
}

// Places returns the paths of an index that are of the given kinds.
func Places(spec value.Value, kinds ...string) (paths []string) {
	for it := spec.Get("key").Iter(); it.Next(); {
		for _, kind := range kinds {
			if it.Value().Kind() == value.String && it.Value().Str() == kind {
				paths = append(paths, string(it.Key()))
			}
		}
	}
	return paths
}

// spatial returns the spatial indexes of the policy for a declared index.
func spatial(spec value.Value) (out []spatialJSON) {
	for _, p := range Places(spec, "2dsphere") {
		if path, ok := policyPath(p); ok {
			out = append(out, spatialJSON{Path: path + "/?", Pairs: true})
		}
	}
	for _, p := range Places(spec, "2d") {
		if path, ok := policyPath(p); ok {
			lo, hi := planeOf(spec)
			b := map[string]float64{"xmin": lo, "ymin": lo, "xmax": hi, "ymax": hi}
			box, _ := json.Marshal(b) // always possible
			out = append(out, spatialJSON{Path: path + "/?", Pairs: true, Box: box})
		}
	}
	return out
}

// planeOf returns the bounds of a 2d index in both directions.
func planeOf(spec value.Value) (lo, hi float64) {
	lo, hi = -180, 180
	if v := spec.Get("min"); v.IsNumber() {
		lo = num.ToFloat(v)
	}
	if v := spec.Get("max"); v.IsNumber() {
		hi = num.ToFloat(v)
	}
	return lo, hi
}

// placeOptions checks an index on places, and appends the options that it has by default.
func placeOptions(dst []byte, spec value.Value) ([]byte, error) {
	key := spec.Get("key")
	flat, round := Places(spec, "2d"), Places(spec, "2dsphere")
	if len(flat) > 0 {
		it := key.Iter()
		it.Next()
		lo, hi := planeOf(spec)
		switch {
		case len(flat) > 1:
			return dst, CannotCreate("can't have 2 geo fields")
		case len(round) > 0:
			return dst, CannotCreate("Can't use both 2d and 2dsphere in one index: %s", update.Show(key))
		case string(it.Key()) != flat[0]:
			return dst, CannotCreate("2d has to be first in index")
		case !(lo < hi) || math.Abs(lo) > 1e100 || math.Abs(hi) > 1e100:
			return dst, CannotCreate("region for hash must be valid and have positive area, but [%v, %v] was specified",
				lo, hi)
		}
		if b := spec.Get("bits"); b.IsDefined() {
			if n, ok := num.ToInt64(b, true); !ok || n < 1 || n > 32 {
				return dst, CannotCreate("bits for hash must be > 0 and <= 32, but %s bits were specified",
					update.Show(b))
			}
		}
	}
	if len(round) > 0 {
		if v := spec.Get("2dsphereIndexVersion"); !v.IsDefined() {
			dst = bson.AppendInt32(dst, "2dsphereIndexVersion", 3)
		} else if n, ok := num.ToInt64(v, false); !ok || n < 1 || n > 3 {
			return dst, CannotCreate("unsupported geo index version { 2dsphereIndexVersion : %s }, only support "+
				"versions: [1,2,3]", update.Show(v))
		}
	}
	if len(flat)+len(round) > 0 {
		for it := key.Iter(); it.Next(); {
			if _, ok := policyPath(string(it.Key())); !ok && it.Value().Kind() == value.String {
				return dst, CannotCreate("an index on places can't have the path %s on this server", it.Key())
			}
		}
		if refusesDuplicates(spec) {
			return dst, CannotCreate("a unique index on places is not supported by this server")
		}
	}
	return dst, nil
}

// eachPlace calls f with each value at a path that should be a place: an element of an array counts for the array,
// unless the array is a pair itself.
func eachPlace(d value.Value, path string, f func(v value.Value) error) error {
	v := d
	segs := strings.Split(path, ".")
	for i, s := range segs {
		if v.Kind() == value.Array {
			for it := v.Iter(); it.Next(); {
				if e := it.Value(); e.Kind() == value.Object {
					if err := eachPlace(e, strings.Join(segs[i:], "."), f); err != nil {
						return err
					}
				}
			}
			return nil
		}
		v = v.Get(s)
	}
	if v.Kind() == value.Null || !v.IsDefined() {
		return nil
	}
	if v.Kind() == value.Array && !geo.IsShape(v) {
		for it := v.Iter(); it.Next(); {
			if err := f(it.Value()); err != nil {
				return err
			}
		}
		return nil
	}
	return f(v)
}

func checkRound(d value.Value, path string) error {
	return eachPlace(d, path, func(v value.Value) error {
		s, reason := geo.ParseShape(v)
		if s != nil && !s.Round() {
			x, y, _ := s.XY()
			reason = "longitude/latitude is out of bounds, lng: " + num64(x) + " lat: " + num64(y)
		}
		if reason == "" {
			return nil
		}
		return merr.New(16755, "Can't extract geo keys: %s  %s", update.Show(d), reason)
	})
}

func num64(f float64) string { return update.Show(value.DoubleOf(f)) }

func checkFlat(d value.Value, path string, lo, hi float64) error {
	return eachPlace(d, path, func(v value.Value) error {
		s, _ := geo.ParseShape(v)
		if s == nil {
			return merr.New(13654, "location object expected, location array not in correct format: %s", update.Show(v))
		}
		x, y, ok := s.XY()
		switch {
		case !ok:
			return merr.New(13026, "geo values must be 'legacy coordinate pairs' for 2d indexes")
		case x < lo || x > hi || y < lo || y > hi:
			return merr.New(13027, "point not in interval of [ %v, %v ] :: caused by :: %s", lo, hi, update.Show(v))
		}
		return nil
	})
}
