package sqlapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
)

// Values that the members of a container's definition may have.
var (
	vectorTypes     = []string{"float32", "float16", "int8", "uint8"}
	vectorDistances = []string{"cosine", "dotproduct", "euclidean"}
	vectorIndexes   = map[string]int{"flat": maxFlatDimensions, "quantizedflat": maxDimensions,
		"diskann": maxDimensions}
)

const (
	maxDimensions     = 4096
	maxFlatDimensions = 505
)

// oneOf reports whether s is empty or in list. Case is ignored.
func oneOf(s string, list []string) bool {
	return s == "" || slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}

type vectorEmbedding struct {
	Path       string `json:"path"`
	DataType   string `json:"dataType"`
	Dimensions *int   `json:"dimensions"`
	Distance   string `json:"distanceFunction"`
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
	seen := map[string]bool{}
	for _, e := range p.Embeddings {
		if !validPath(e.Path) || strings.Contains(e.Path, "[]") || seen[e.Path] || !oneOf(e.DataType, vectorTypes) ||
			!oneOf(e.Distance, vectorDistances) {
			return nil, errInvalid
		}
		if e.Dimensions != nil && (*e.Dimensions < 1 || *e.Dimensions > maxDimensions) {
			return nil, errInvalid
		}
		seen[e.Path] = true
	}
	return p.Embeddings, nil
}

// checkVectorIndexes checks the vector indexes of a policy against the container's embeddings. Each index must be on
// the path of an embedding and have a known type. The embedding must not have more dimensions than the type supports.
func checkVectorIndexes(spec *core.ContainerSpec) error {
	var p struct {
		Indexes []struct {
			Path string `json:"path"`
			Type string `json:"type"`
		} `json:"vectorIndexes"`
	}
	if json.Unmarshal(spec.IndexingPolicy, &p) != nil || len(p.Indexes) == 0 {
		return nil // the policy has been checked before
	}
	var list []vectorEmbedding
	if raw := spec.Properties[vectorMember]; len(raw) > 0 {
		var err error
		if list, err = vectorEmbeddings(raw); err != nil {
			return err
		}
	}
	for _, x := range p.Indexes {
		most, ok := vectorIndexes[strings.ToLower(x.Type)]
		if !ok {
			return badPolicy("unknown type '%s' of a vector index.", clip(x.Type))
		}
		i := slices.IndexFunc(list, func(e vectorEmbedding) bool { return e.Path == x.Path })
		if i < 0 {
			return badPolicy("the path '%s' of a vector index has no vector embedding.", clip(x.Path))
		}
		if d := list[i].Dimensions; d != nil && *d > most {
			return badPolicy("a vector index of type '%s' takes at most %d dimensions.", x.Type, most)
		}
	}
	return nil
}

// maxRetention is the longest time, in minutes, for which all versions may be kept: 30 days, as in the service.
const maxRetention = 30 * 24 * 60

// parseChangeFeedPolicy reads a changeFeedPolicy: for how many minutes all versions are kept. 0 and an absent policy
// mean that they are not.
func parseChangeFeedPolicy(raw json.RawMessage) (minutes int64, err error) {
	if isNull(raw) {
		return 0, nil
	}
	var p struct {
		Minutes int64 `json:"retentionDuration"`
	}
	if json.Unmarshal(raw, &p) != nil || p.Minutes < 0 || p.Minutes > maxRetention {
		return 0, invalidMember("changeFeedPolicy")
	}
	return p.Minutes, nil
}

// checkEncryption checks a clientEncryptionPolicy: the paths that clients encrypt, and their keys.
func checkEncryption(raw json.RawMessage) error {
	var p struct {
		Included []struct {
			Path string `json:"path"`
			Key  string `json:"clientEncryptionKeyId"`
			Type string `json:"encryptionType"`
		} `json:"includedPaths"`
		Version *int `json:"policyFormatVersion"`
	}
	if json.Unmarshal(raw, &p) != nil || p.Version != nil && *p.Version != 1 && *p.Version != 2 {
		return errInvalid
	}
	for _, x := range p.Included {
		if !validPath(x.Path) || x.Key == "" || x.Type != "Deterministic" && x.Type != "Randomized" {
			return errInvalid
		}
	}
	return nil
}

// invalidMember returns the error for an invalid member of a container's definition.
func invalidMember(name string) error {
	return status.New(status.BadRequest, "The member %s of the container is invalid.", name)
}
