package sqlapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/status"
)

const geospatialMember = propertyPrefix + "geospatialConfig"

const (
	configGeography = `{"type":"Geography"}`
	configGeometry  = `{"type":"Geometry"}`
)

// isPlanar reports whether a container's geometries lie in a plane.
func isPlanar(spec *core.ContainerSpec) bool {
	switch raw := spec.Properties[geospatialMember]; string(raw) {
	case "", configGeography:
		return false
	case configGeometry:
		return true
	default:
		var p struct{ Type string }
		return json.Unmarshal(raw, &p) == nil && p.Type == "Geometry"
	}
}

// spatialTypes are the types of a spatial index. An index with any of them gets all of them, and replies show all.
var spatialTypes = []string{"Point", "LineString", "Polygon", "MultiPolygon"}

// spatialIndexJSON is a spatial index in the form that is stored and echoed.
type spatialIndexJSON struct {
	Path  string   `json:"path"`
	Types []string `json:"types"`
	Box   *boxJSON `json:"boundingBox,omitempty"`
}

type boxJSON struct {
	XMin *float64 `json:"xmin"`
	YMin *float64 `json:"ymin"`
	XMax *float64 `json:"xmax"`
	YMax *float64 `json:"ymax"`
}

// checkSpatial validates the spatial indexes of a policy and completes their types.
func (p *indexingJSON) checkSpatial() error {
	if err := checkPathList("spatial index", p.Spatial, false); err != nil {
		return err
	}
	for i, raw := range p.Spatial {
		var s spatialIndexJSON
		if json.Unmarshal(raw, &s) != nil {
			return badPolicy("a spatial index is not of the documented shape.")
		}
		if len(s.Types) == 0 {
			return badPolicy("The spatial data types array cannot be empty. Assign at least one spatial type for "+
				"the 'types' array for the path '%s'.", clip(s.Path))
		}
		for _, t := range s.Types {
			if !slices.ContainsFunc(spatialTypes, func(known string) bool { return strings.EqualFold(known, t) }) {
				return badPolicy("unknown spatial type '%s'.", clip(t))
			}
		}
		s.Types = spatialTypes
		if s.Box != nil && !s.Box.valid() {
			return badPolicy("the bounding box of the spatial path '%s' must have the numbers xmin, ymin, xmax and "+
				"ymax, and a width and a height.", clip(s.Path))
		}
		out, err := marshal(&s)
		if err != nil {
			return err
		}
		p.Spatial[i] = out
	}
	return nil
}

func (b *boxJSON) valid() bool {
	return b.XMin != nil && b.YMin != nil && b.XMax != nil && b.YMax != nil &&
		geo.Box{XMin: *b.XMin, YMin: *b.YMin, XMax: *b.XMax, YMax: *b.YMax}.Valid()
}

// checkBoxes checks the spatial indexes against the geospatial configuration. For Geometry each needs a bounding box,
// for Geography none may have one.
func checkBoxes(spec *core.ContainerSpec) error {
	var p struct {
		Spatial []spatialIndexJSON `json:"spatialIndexes"`
	}
	if json.Unmarshal(spec.IndexingPolicy, &p) != nil {
		return nil // checked before
	}
	planar := isPlanar(spec)
	for _, s := range p.Spatial {
		switch {
		case planar && s.Box == nil:
			return status.New(status.BadRequest, "The spatial path '%s' needs a bounding box: the geospatial "+
				"configuration of the container is Geometry.", clip(s.Path))
		case !planar && s.Box != nil:
			return status.New(status.BadRequest, "The spatial path '%s' has a bounding box, which only a container "+
				"whose geospatial configuration is Geometry may have.", clip(s.Path))
		}
	}
	return nil
}
