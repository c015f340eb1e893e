package index

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Spatial entries. A rule in the policy's spatialIndexes gives each geometry below its path entries with a separate
// path id: one entry for a point, up to eight for other shapes, one for each covering cell (core/geo). An array on the
// path makes no difference. A value whose type is that of a geometry but that is invalid or too complex gets an "any
// value" entry, so a later version that accepts it needs no new index. Other values get no entry. A rule with a
// bounding box indexes a plane, a rule without one the earth. The service allows a box only if the container's
// geospatial configuration is Geometry.
//
// A rule with pairs indexes all forms of places that MongoDB has (geo.Shape) under path ids of its own. With a box it
// indexes points only. The MongoDB API makes such rules for 2dsphere and 2d indexes.

// spatialMark is the first part of a spatial path id's hash input. No field has such a name.
const spatialMark = "\x00spatial"

// SpatialRule is one compiled entry of spatialIndexes.
type SpatialRule struct {
	segs  []string // stored names, without array marks
	deep  bool     // .../*: everything below the path too
	seed  uint64   // the start of its path ids
	Plane bool
	Box   geo.Box // the box of the plane
	Pairs bool
}

type spatialJSON struct {
	Path  string `json:"path"`
	Pairs bool   `json:"pairs"`
	Box   *struct {
		XMin, YMin, XMax, YMax *float64
	} `json:"boundingBox"`
}

// addSpatial compiles the policy's spatialIndexes. Their types are ignored: the service indexes all types, whatever the
// policy lists. The API that accepts the policy validates it. A malformed definition, which an older version stored
// without a check, is ignored.
func (p *Policy) addSpatial(list []json.RawMessage) {
	for _, raw := range list {
		var e spatialJSON
		if json.Unmarshal(raw, &e) != nil {
			continue
		}
		if r, ok := e.compile(p.Seed); ok {
			p.spatial = append(p.spatial, r)
		}
	}
}

func (e *spatialJSON) compile(seed uint64) (r SpatialRule, ok bool) {
	r.deep = strings.HasSuffix(e.Path, "/*")
	if base := strings.TrimSuffix(strings.TrimSuffix(e.Path, "/*"), "/?"); base != "" {
		segs, err := catalog.ParsePath(base)
		if err != nil {
			return r, false
		}
		for _, s := range segs {
			if s != "[]" {
				r.segs = append(r.segs, s)
			}
		}
	}
	if len(r.segs) == 0 && !r.deep {
		return r, false
	}
	mark := []byte(spatialMark)
	if r.Pairs = e.Pairs; r.Pairs {
		mark = append(mark, "\x00pairs"...)
	}
	if e.Box != nil {
		var b [4]float64
		for i, x := range [...]*float64{e.Box.XMin, e.Box.YMin, e.Box.XMax, e.Box.YMax} {
			if x == nil {
				return r, false
			}
			b[i] = *x
			mark = binary.BigEndian.AppendUint64(mark, math.Float64bits(*x))
		}
		r.Plane, r.Box = true, geo.Box{XMin: b[0], YMin: b[1], XMax: b[2], YMax: b[3]}
		if !r.Box.Valid() {
			return r, false
		}
	}
	r.seed = child(seed, mark)
	return r, true
}

// Spatial returns the rule that indexes geometries at a path in a plane, or on the earth, and the path's id. With pairs
// it is the rule for shapes. The rule is nil if there is none.
func (p *Policy) Spatial(segs []string, plane, pairs bool) (*SpatialRule, uint64) {
next:
	for i := range p.spatial {
		r := &p.spatial[i]
		if r.Plane != plane || r.Pairs != pairs || len(segs) < len(r.segs) || len(segs) == 0 {
			continue
		}
		if len(segs) > len(r.segs) && !r.deep {
			continue
		}
		for j, s := range r.segs {
			if segs[j] != s {
				continue next
			}
		}
		id := r.seed
		for _, s := range segs {
			id = child(id, []byte(s))
		}
		return r, id
	}
	return nil, 0
}

// spatialWork limits the cost of the shapes of one document below a rule to half a second. Shapes beyond it get "any
// value" entries. A document of up to spatialWhole bytes can't reach the limit: it has at most 200 positions, each
// compared with a thousand cells.
const (
	spatialWork  = 5_000_000
	spatialWhole = 4096
)

// spatial emits the entries of all geometries below v that a rule covers. v is at depth n of the rule's path.
func (w *walker) spatial(r *SpatialRule, v value.Value, n int, id uint64, depth int) {
	if depth > maxDepth {
		return
	}
	switch v.Kind() {
	case value.Array:
		if n > 0 && n >= len(r.segs) && r.Pairs && geo.IsShape(v) {
			w.shape(r, v, id)
			return
		}
		for it := v.Iter(); it.Next(); {
			w.spatial(r, it.Value(), n, id, depth+1)
		}
	case value.Object:
		if n > 0 && n >= len(r.segs) && (!r.Pairs && geo.Resembles(v) || r.Pairs && geo.IsShape(v)) {
			w.shape(r, v, id)
		}
		if n >= len(r.segs) && !r.deep {
			return
		}
		for it := v.Iter(); it.Next(); {
			if n >= len(r.segs) || string(it.Key()) == r.segs[n] {
				if e := it.Value(); e.Kind() == value.Object || e.Kind() == value.Array {
					w.spatial(r, e, n+1, child(id, it.Key()), depth+1)
				}
			}
		}
	}
}

func (w *walker) shape(r *SpatialRule, v value.Value, id uint64) {
	var cells []geo.Cell
	switch {
	case r.Pairs && r.Plane:
		cells = geo.ShapeCellsOf(v, &r.Box, &w.work)
	case r.Pairs:
		cells = geo.ShapeCellsOf(v, nil, &w.work)
	case r.Plane:
		cells = geo.FlatCellsOf(v, r.Box, &w.work)
	default:
		cells = geo.CellsOf(v, &w.work)
	}
	if len(cells) == 0 || len(w.t.list)+len(cells) > MaxTerms {
		w.anyValue(id)
		return
	}
	for _, c := range cells {
		class := byte(value.ClassCell)
		if c.Leaf() {
			class = value.ClassLeafCell
		}
		t := w.t
		off := t.begin(id)
		t.buf = keys.AppendCell(t.buf, class, uint64(c))
		t.Classes |= 1 << (class >> 3)
		t.end(id, off, FlagSet)
	}
}
