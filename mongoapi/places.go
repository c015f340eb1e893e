package mongoapi

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// Indexes on places: 2dsphere and 2d. Each of their paths becomes a spatial index of the container's policy, with the
// mark pairs, which indexes all of MongoDB's forms of places (core/geo.Shape). A 2d index has a box: min and max in
// both directions.
//
// Such indexes refuse documents whose places are malformed. So that other collections don't pay for that check, the
// container's property placesProperty tells that there are any.
const placesProperty = "mongo.places"

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

// places returns the paths of an index that are of the given kinds.
func places(spec value.Value, kinds ...string) (paths []string) {
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
	for _, p := range places(spec, "2dsphere") {
		if path, ok := policyPath(p); ok {
			out = append(out, spatialJSON{Path: path + "/?", Pairs: true})
		}
	}
	for _, p := range places(spec, "2d") {
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
	flat, round := places(spec, "2d"), places(spec, "2dsphere")
	if len(flat) > 0 {
		it := key.Iter()
		it.Next()
		lo, hi := planeOf(spec)
		switch {
		case len(flat) > 1:
			return dst, cannotCreate("can't have 2 geo fields")
		case len(round) > 0:
			return dst, cannotCreate("Can't use both 2d and 2dsphere in one index: %s", update.Show(key))
		case string(it.Key()) != flat[0]:
			return dst, cannotCreate("2d has to be first in index")
		case !(lo < hi) || math.Abs(lo) > 1e100 || math.Abs(hi) > 1e100:
			return dst, cannotCreate("region for hash must be valid and have positive area, but [%v, %v] was specified",
				lo, hi)
		}
		if b := spec.Get("bits"); b.IsDefined() {
			if n, ok := num.ToInt64(b, true); !ok || n < 1 || n > 32 {
				return dst, cannotCreate("bits for hash must be > 0 and <= 32, but %s bits were specified",
					update.Show(b))
			}
		}
	}
	if len(round) > 0 {
		if v := spec.Get("2dsphereIndexVersion"); !v.IsDefined() {
			dst = bson.AppendInt32(dst, "2dsphereIndexVersion", 3)
		} else if n, ok := num.ToInt64(v, false); !ok || n < 1 || n > 3 {
			return dst, cannotCreate("unsupported geo index version { 2dsphereIndexVersion : %s }, only support "+
				"versions: [1,2,3]", update.Show(v))
		}
	}
	if len(flat)+len(round) > 0 {
		for it := key.Iter(); it.Next(); {
			if _, ok := policyPath(string(it.Key())); !ok && it.Value().Kind() == value.String {
				return dst, cannotCreate("an index on places can't have the path %s on this server", it.Key())
			}
		}
		if spec.Get("unique").IsDefined() {
			return dst, cannotCreate("a unique index on places is not supported by this server")
		}
	}
	return dst, nil
}

// checkedKinds are the kinds of indexes that some documents can't have.
var checkedKinds = []string{"2d", "2dsphere", "text", "hashed"}

// setPlaces records which indexes of a container refuse documents: whether there are some of checkedKinds, and the
// compound ones.
func setPlaces(s *core.ContainerSpec, specs []value.Value) {
	setCompounds(s, specs)
	delete(s.Properties, placesProperty)
	for _, d := range specs {
		if len(places(d, checkedKinds...)) > 0 {
			s.Properties[placesProperty] = []byte{1}
		}
	}
}

// checkPlaces refuses a document that an index on places, of texts or of hashes can't have.
func (k *coll) checkPlaces(d value.Value) error {
	if len(k.Spec().Properties[placesProperty]) == 0 {
		return nil
	}
	for _, s := range k.indexSpecs() {
		for _, p := range places(s, "2dsphere") {
			if err := checkRound(d, p); err != nil {
				return err
			}
		}
		for _, p := range places(s, "2d") {
			lo, hi := planeOf(s)
			if err := checkFlat(d, p, lo, hi); err != nil {
				return err
			}
		}
		if isText(s) {
			if err := checkTexts(d, s); err != nil {
				return err
			}
		}
		for _, p := range places(s, "hashed") {
			if filter.ThroughArray(d, p) {
				return merr.New(16766, "hashed indexes do not currently support array values")
			}
		}
	}
	return nil
}

// checkStoredPlaces removes new indexes again if a stored document is one that they refuse. Writers check their
// documents already.
func (r *request) checkStoredPlaces(k *coll, docs []value.Value) error {
	if !slices.ContainsFunc(docs, func(d value.Value) bool {
		return len(places(d, checkedKinds...)) > 0 || isCompound(d)
	}) {
		return nil
	}
	all, err := filter.Compile(value.Undef(), filter.Options{})
	if err != nil {
		return err
	}
	src := newSource(k, all, nil, exec.AnyOrder, 0, 0, r.exprEnv())
	defer src.Close()
	for {
		it, err := src.next()
		if err != nil || it == nil {
			return err
		}
		d := value.ObjectOf(it.Doc)
		if bad := cmp.Or(k.checkPlaces(d), k.checkCompounds(d)); bad != nil {
			err := r.changeIndexes(k, nil, func(specs []value.Value) ([]value.Value, error) {
				return slices.DeleteFunc(specs, func(s value.Value) bool {
					return slices.ContainsFunc(docs, func(d value.Value) bool { return value.CompareBSON(s, d) == 0 })
				}), nil
			})
			if err != nil {
				return err
			}
			return bad
		}
	}
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

// hasPlaces returns the error of a nearness that needs an index which the collection doesn't have.
func (k *coll) hasPlaces(n *filter.Near) error {
	kinds := []string{"2dsphere"}
	switch {
	case n.Flat:
		kinds = []string{"2d"}
	case n.Either:
		kinds = append(kinds, "2d")
	}
	for _, s := range k.indexSpecs() {
		for _, p := range places(s, kinds...) {
			if p == n.Path && !s.Get("hidden").IsDefined() {
				return nil
			}
		}
	}
	return merr.New(merr.NoQueryPlans, "error processing query: ns=%s Tree: GEONEAR  field=%s\nSort: {}\nProj: {}\n "+
		"planner returned error :: caused by :: unable to find index for $geoNear query", k.namespace(), n.Path)
}

// nearOrder is the order of the distances from a place. The condition is exact, so each document has a distance.
func nearOrder(n *filter.Near) exec.Order {
	o := n.Order()
	return exec.Order{Path: o.Path, Near: o, Key: func(it *core.Item) value.Value {
		d, _, ok := n.Distance(value.ObjectOf(it.Doc))
		if !ok {
			return value.NullValue()
		}
		return value.DoubleOf(d)
	}}
}

// placeIndex returns the path of a collection's only index on places. If it has 2d indexes, those count.
func (r *request) placeIndex(name string) (string, error) {
	k, err := r.open(r.db, name)
	if err != nil {
		return "", err
	}
	if k != nil {
		for _, kind := range []string{"2d", "2dsphere"} {
			var all []string
			for _, s := range k.indexSpecs() {
				if !s.Get("hidden").IsDefined() {
					all = append(all, places(s, kind)...)
				}
			}
			switch len(all) {
			case 0:
			case 1:
				return all[0], nil
			default:
				return "", merr.New(merr.IndexNotFound, "There is more than one %s index on %s; unsure which to use "+
					"for $geoNear", kind, k.namespace())
			}
		}
	}
	return "", merr.New(merr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
}
