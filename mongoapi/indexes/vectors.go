package indexes

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/vector"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// Indexes on vectors in the service's form are declared by createIndexes and listed by listIndexes. The names of kinds
// and similarities, and the bounds, are those of its documentation.
//
// Example: {key: {v: "cosmosSearch"}, name: "v", cosmosSearchOptions: {kind: "vector-hnsw", m: 16, efConstruction: 64,
// similarity: "COS", dimensions: 3}}.

const (
	cosmosSearch  = "cosmosSearch"
	cosmosOptions = "cosmosSearchOptions"
)

// cosmosSimilarities are the metrics of the similarities.
var cosmosSimilarities = map[string]vector.Metric{"COS": vector.Cosine, "IP": vector.Dot, "L2": vector.Squared}

// cosmosBound is an option that is a number between two.
type cosmosBound struct {
	name        string
	least, most int64
}

// cosmosKinds are the kinds of indexes, with the options of each.
var cosmosKinds = map[string][]cosmosBound{
	"vector-ivf":     {{"numLists", 1, 32768}},
	"vector-hnsw":    {{"m", 2, 100}, {"efConstruction", 4, 1000}},
	"vector-diskann": {{"maxDegree", 20, 2048}, {"lBuild", 10, 500}},
}

// The largest numbers of dimensions. Only some kinds of indexes, and compressed ones, have more than the first.
const (
	maxCosmosDims     = 2000
	maxCosmosManyDims = 16000
)

func cosmosKey(key value.Value) bool {
	it := key.Iter()
	return it.Next() && it.Value().Kind() == value.String && it.Value().Str() == cosmosSearch
}

// checkCosmos checks an index that is one on vectors, or has the options of one.
func checkCosmos(d value.Value) error {
	o := d.Get(cosmosOptions)
	switch {
	case !o.IsDefined():
		return CannotCreate("cosmosSearchOptions must be specified for cosmosSearch index")
	case !cosmosKey(d.Get("key")):
		return CannotCreate("cosmosSearchOptions can only be specified for cosmosSearch index")
	}
	for _, name := range []string{"unique", "prepareUnique", "sparse", "expireAfterSeconds", "partialFilterExpression",
		"collation"} {
		if v := d.Get(name); v.IsDefined() && (v.Kind() != value.Bool || v.Bool()) {
			return CannotCreate("The option %s is not supported for a cosmosSearch index", name)
		}
	}
	bounds, known := cosmosKinds[o.Get("kind").Str()]
	if !known {
		return CannotCreate("Invalid search index kind %s", shownOption(o, "kind"))
	}
	if _, known := cosmosSimilarities[o.Get("similarity").Str()]; !known {
		return CannotCreate("Invalid search index similarity %s", shownOption(o, "similarity"))
	}
	dims, whole := num.ToInt64(o.Get("dimensions"), false)
	most := int64(maxCosmosDims)
	if o.Get("compression").IsDefined() || o.Get("kind").Str() == "vector-diskann" {
		most = maxCosmosManyDims
	}
	switch {
	case !whole || dims <= 1:
		return CannotCreate("cosmosSearch index dimensions must be greater than 1")
	case dims > most:
		return CannotCreate("field cannot have more than %d dimensions for vector index", most)
	}
	for _, b := range bounds {
		v := o.Get(b.name)
		if n, whole := num.ToInt64(v, false); v.IsDefined() && (!whole || n < b.least || n > b.most) {
			return CannotCreate("%s must be between %d and %d for %s indexes", b.name, b.least, b.most,
				o.Get("kind").Str())
		}
	}
	m, ef := int64(16), int64(64)
	if v := o.Get("m"); v.IsDefined() {
		m, _ = num.ToInt64(v, false)
	}
	if v := o.Get("efConstruction"); v.IsDefined() {
		ef, _ = num.ToInt64(v, false)
	}
	if o.Get("kind").Str() == "vector-hnsw" && ef < 2*m {
		return CannotCreate("efConstruction must be greater than or equal to 2 * m for vector-hnsw indexes")
	}
	return nil
}

// shownOption returns an option as an error shows it.
func shownOption(o value.Value, name string) string {
	v := o.Get(name)
	if !v.IsDefined() {
		return "(missing)"
	}
	return merr.Show(v)
}

// excludedJSON is a path of a policy that has no automatic index.
type excludedJSON struct {
	Path string `json:"path"`
}

// unindexed returns the paths of vectors of an index in the service's form or of a search index. They have no automatic
// index, which would have an entry for each number of each vector, and find nothing that somebody looks for.
func unindexed(d value.Value) (out []excludedJSON) {
	var paths []string
	if key := d.Get("key"); cosmosKey(key) {
		it := key.Iter()
		it.Next()
		paths = append(paths, string(it.Key()))
	}
	for _, f := range value.Elements(d.Get("definition").Get("fields")) {
		if f.Get("type").Str() == "vector" {
			paths = append(paths, f.Get("path").Str())
		}
	}
	for _, p := range paths {
		if path, ok := policyPath(p); ok {
			out = append(out, excludedJSON{path + "/*"})
		}
	}
	return out
}

// CosmosVectors returns the index that searches for vectors at a path; nil if a declared index isn't one.
func CosmosVectors(d value.Value, path string) *agg.VectorIndex {
	key := d.Get("key")
	if !cosmosKey(key) || !key.Get(path).IsDefined() || d.Get("hidden").IsDefined() {
		return nil
	}
	o := d.Get(cosmosOptions)
	dims, _ := num.ToInt64(o.Get("dimensions"), false)
	return &agg.VectorIndex{Cosmos: true, Fields: []agg.VectorField{{Path: path, Dims: int(dims),
		Metric: cosmosSimilarities[o.Get("similarity").Str()]}}}
}
