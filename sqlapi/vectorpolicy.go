package sqlapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
)

// The policies about vectors in a container's definition. Their errors have the service's texts.

var (
	vectorTypes     = []string{"float32", "float16", "int8", "uint8"}
	vectorDistances = []string{"cosine", "dotproduct", "euclidean"}
	vectorIndexes   = map[string]int{"flat": maxFlatDimensions, "quantizedflat": maxDimensions,
		"diskann": maxDimensions}
)

const (
	maxDimensions     = 4096
	maxFlatDimensions = 505
	maxQuantized      = 512 // bytes of a vector, but not more than it has dimensions
	minSearchList     = 25
	maxSearchList     = 500
	maxShardPaths     = 1
)

type vectorEmbedding struct {
	Path       string `json:"path"`
	DataType   string `json:"dataType"`
	Dimensions *int   `json:"dimensions"`
	Distance   string `json:"distanceFunction"`
}

type vectorIndex struct {
	Path       string   `json:"path"`
	Type       string   `json:"type"`
	Quantized  *int     `json:"quantizationByteSize"`
	SearchList *int     `json:"indexingSearchListSize"`
	Shard      []string `json:"vectorIndexShardKey"`
}

// checkVectorPolicy checks a vectorEmbeddingPolicy.
func checkVectorPolicy(raw json.RawMessage) error {
	_, err := vectorEmbeddings(raw)
	return err
}

func vectorEmbeddings(raw json.RawMessage) ([]vectorEmbedding, error) {
	var p struct {
		Embeddings []vectorEmbedding `json:"vectorEmbeddings"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil, errInvalid
	}
	bad := func(format string, args ...any) ([]vectorEmbedding, error) {
		return nil, status.New(status.BadRequest, "The Vector Embedding Policy has "+format, args...)
	}
	seen := map[string]bool{}
	for _, e := range p.Embeddings {
		switch {
		case !validPath(e.Path) || strings.Contains(e.Path, "[]") || seen[e.Path]:
			return nil, errInvalid
		case !oneOf(e.DataType, vectorTypes):
			return bad("an invalid DataType:%s.", clip(e.DataType))
		case !oneOf(e.Distance, vectorDistances):
			return bad("an invalid DistanceFunction:%s.", clip(e.Distance))
		case e.Dimensions != nil && *e.Dimensions > maxDimensions:
			return bad("Dimensions:%d which is more than the maximum supported value %d.", *e.Dimensions, maxDimensions)
		case e.Dimensions != nil && *e.Dimensions < 1:
			return bad("Dimensions:%d which is less than the minimum supported value 1.", *e.Dimensions)
		}
		seen[e.Path] = true
	}
	return p.Embeddings, nil
}

// vectorsOf returns the embeddings of a container and its vector indexes. Both policies have been checked one by one.
func vectorsOf(spec *core.ContainerSpec) (list []vectorEmbedding, indexes []vectorIndex, err error) {
	var p struct {
		Indexes []vectorIndex `json:"vectorIndexes"`
	}
	if len(spec.IndexingPolicy) > 0 && json.Unmarshal(spec.IndexingPolicy, &p) != nil {
		return nil, nil, errInvalid
	}
	if raw := spec.Properties[vectorMember]; len(raw) > 0 {
		list, err = vectorEmbeddings(raw)
	}
	return list, p.Indexes, err
}

// checkVectorIndexes checks the vector indexes of a policy against the container's embeddings. Each index must be on
// the path of an embedding and have a known type. The embedding must not have more dimensions than the type supports.
func checkVectorIndexes(spec *core.ContainerSpec) error {
	list, indexes, err := vectorsOf(spec)
	if err != nil {
		return err
	}
	for i := range indexes {
		x := &indexes[i]
		most, ok := vectorIndexes[strings.ToLower(x.Type)]
		if !ok {
			return badPolicy("The Vector Indexing Policy's Index Type::%s is invalid.", clip(x.Type))
		}
		i := slices.IndexFunc(list, func(e vectorEmbedding) bool { return e.Path == x.Path })
		if i < 0 {
			return badPolicy("The Vector Indexing Policy's path::%s not matching in Embedding's path.", clip(x.Path))
		}
		quantized := maxQuantized
		if d := list[i].Dimensions; d != nil {
			if *d > most {
				return badPolicy("a vector index of type '%s' takes at most %d dimensions.", x.Type, most)
			}
			quantized = min(quantized, *d)
		}
		if err := inRange("QuantizationByteSize", x.Quantized, 1, quantized); err != nil {
			return err
		}
		if err := inRange("IndexingSearchListSize", x.SearchList, minSearchList, maxSearchList); err != nil {
			return err
		}
		if len(x.Shard) > maxShardPaths {
			return badPolicy("The number of shard paths defined in the Vector Indexing Policy: %d exceeds the "+
				"maximum: %d.", len(x.Shard), maxShardPaths)
		}
		for _, path := range x.Shard {
			if !validPath(path) {
				return badPolicy("The Vector Indexing Policy has an invalid Shard Path: %s.", clip(path))
			}
		}
	}
	return nil
}

// inRange checks a parameter of a vector index; nil: it isn't given.
func inRange(name string, v *int, least, most int) error {
	if v == nil || *v >= least && *v <= most {
		return nil
	}
	return badPolicy("The Vector Indexing Policy parameter %s value :: %d is out of range. The allowed range is "+
		"between %d and %d.", name, *v, least, most)
}

// keepVectors refuses a replacement of a container's definition that changes an embedding or the type of a vector
// index.
func keepVectors(spec, old *core.ContainerSpec) error {
	list, indexes, err := vectorsOf(spec)
	if err != nil {
		return err
	}
	before, was, err := vectorsOf(old)
	if err != nil {
		return nil // of an older version, which took it
	}
	for _, e := range list {
		if i := slices.IndexFunc(before, func(b vectorEmbedding) bool { return b.Path == e.Path }); i >= 0 {
			b := &before[i]
			same := strings.EqualFold(b.DataType, e.DataType) && strings.EqualFold(b.Distance, e.Distance) &&
				(b.Dimensions == nil) == (e.Dimensions == nil)
			if !same || b.Dimensions != nil && *b.Dimensions != *e.Dimensions {
				return status.New(status.BadRequest,
					"Paths in existing embedding policy cannot be modified in Collection Replace.")
			}
		}
	}
	for _, x := range indexes {
		if i := slices.IndexFunc(was, func(b vectorIndex) bool { return b.Path == x.Path }); i >= 0 &&
			!strings.EqualFold(was[i].Type, x.Type) {
			return status.New(status.BadRequest,
				"Paths in existing vector indexing policy cannot be modified in Collection Replace.")
		}
	}
	return nil
}
