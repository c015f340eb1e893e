package indexes

import (
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/vector"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// Search indexes are those of Atlas, of type vectorSearch. The store has no index for them: a search reads the vectors
// of all documents that its filter lets pass. The definition says how they are compared, and which paths a filter may
// use. So an index is ready as soon as it is declared.
//
// Example: {name: "near", type: "vectorSearch", definition: {fields: [{type: "vector", path: "v", numDimensions: 3,
// similarity: "cosine"}, {type: "filter", path: "year"}]}}.

// searchProperty is the container's property with a collection's search indexes: a BSON array of their documents, which
// have the fields id, name, version, created and definition.
const searchProperty = "mongo.searchIndexes"

// maxDims is the largest number of dimensions.
const maxDims = 8192

var similarities = map[string]vector.Metric{"cosine": vector.Cosine, "dotProduct": vector.Dot,
	"euclidean": vector.Squared}

// Search returns the search indexes of a container.
func Search(s *core.ContainerSpec) []value.Value {
	if b := s.Properties[searchProperty]; len(b) >= 5 {
		return value.Elements(value.ArrayOf(b))
	}
	return nil
}

// SetSearch replaces the search indexes of a container. The vectors have no automatic index any more.
func SetSearch(s *core.ContainerSpec, list []value.Value) {
	declared := In(s)
	s.IndexingPolicy = Policy(s.IndexingPolicy, slices.Concat(declared, Search(s)), slices.Concat(declared, list))
	if s.Properties == nil {
		s.Properties = map[string][]byte{}
	}
	if s.Properties[searchProperty] = value.MakeArray(list).Bytes(); len(list) == 0 {
		delete(s.Properties, searchProperty)
	}
}

// StoredSearch returns a search index as it is stored.
func StoredSearch(id, name string, version, created int64, definition value.Value) value.Value {
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "id", id)
	b = bson.AppendString(b, "name", name)
	b = bson.AppendInt64(b, "version", version)
	b = bson.AppendDate(b, "created", created)
	return value.ObjectOf(bson.End(value.AppendElement(b, "definition", definition), at))
}

// ShownSearch returns a search index as it is listed.
func ShownSearch(x value.Value) value.Value {
	version := func(b []byte, name string) []byte {
		at, b := bson.BeginObject(b, name)
		b = value.AppendElement(b, "version", x.Get("version"))
		return bson.End(value.AppendElement(b, "createdAt", x.Get("created")), at)
	}
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, "id", x.Get("id"))
	b = value.AppendElement(b, "name", x.Get("name"))
	b = bson.AppendString(b, "type", "vectorSearch")
	b = bson.AppendString(b, "status", "READY")
	b = bson.AppendBool(b, "queryable", true)
	b = version(b, "latestDefinitionVersion")
	return value.ObjectOf(bson.End(value.AppendElement(b, "latestDefinition", x.Get("definition")), at))
}

// SearchVectors returns a search index as a search uses it.
func SearchVectors(x value.Value) *agg.VectorIndex {
	out := &agg.VectorIndex{Filters: []string{}}
	for _, f := range value.Elements(x.Get("definition").Get("fields")) {
		if f.Get("type").Str() == "filter" {
			out.Filters = append(out.Filters, f.Get("path").Str())
			continue
		}
		dims, _ := num.ToInt64(f.Get("numDimensions"), false)
		out.Fields = append(out.Fields, agg.VectorField{Path: f.Get("path").Str(), Dims: int(dims),
			Metric: similarities[f.Get("similarity").Str()]})
	}
	return out
}

// badSearch is the error for a definition that can't be.
func badSearch(format string, args ...any) error { return merr.New(merr.BadValue, format, args...) }

// definitionFields are the fields of a definition.
var definitionFields = map[string]bool{"fields": true, "numPartitions": true, "storedSource": true}

// searchFields are those of a path, by its type. True: it is required.
var searchFields = map[string]map[string]bool{
	"vector": {"type": true, "path": true, "numDimensions": true, "similarity": true, "quantization": false,
		"indexingMethod": false, "hnswOptions": false},
	"filter": {"type": true, "path": true},
}

// CheckSearch checks the definition of a search index.
func CheckSearch(d value.Value) error {
	for it := d.Iter(); it.Next(); {
		if !definitionFields[string(it.Key())] {
			return badSearch("\"definition\" unrecognized field \"%s\"", it.Key())
		}
	}
	list := d.Get("fields")
	switch {
	case !list.IsDefined():
		return badSearch("\"definition.fields\" is required")
	case list.Kind() != value.Array:
		return badSearch("\"definition.fields\" must be an array")
	case list.Len() == 0:
		return badSearch("\"definition.fields\" cannot be empty")
	}
	seen := map[string]bool{} // a definition may have filters alone: it only can't be searched
	for i, f := range value.Elements(list) {
		where := "definition.fields[" + strconv.Itoa(i) + "]"
		if f.Kind() != value.Object {
			return badSearch("\"%s\" must be a document", where)
		}
		if err := checkSearchField(where, f); err != nil {
			return err
		}
		path := f.Get("path").Str()
		if seen[path] {
			return badSearch("\"definition.fields\" Vector and filter fields should have distinct paths")
		}
		seen[path] = true
	}
	return nil
}

// checkSearchField checks one path of a definition.
func checkSearchField(where string, f value.Value) error {
	t := f.Get("type")
	known, ok := searchFields[t.Str()]
	switch {
	case !t.IsDefined():
		return badSearch("\"%s.type\" is required", where)
	case !ok:
		return badSearch("\"%s.type\" must be one of [vector, filter]", where)
	}
	for it := f.Iter(); it.Next(); {
		if _, ok := known[string(it.Key())]; !ok {
			return badSearch("\"%s\" unrecognized field \"%s\"", where, it.Key())
		}
	}
	for _, name := range []string{"path", "numDimensions", "similarity"} {
		if known[name] && !f.Get(name).IsDefined() {
			return badSearch("\"%s.%s\" is required", where, name)
		}
	}
	if path := f.Get("path"); path.Kind() != value.String {
		return badSearch("\"%s.path\" must be a string", where)
	} else if !plainPath(path.Str()) {
		return badSearch("\"%s.path\" must be a path of field names", where)
	}
	if t.Str() == "filter" {
		return nil
	}
	dims, whole := num.ToInt64(f.Get("numDimensions"), false)
	_, similar := similarities[f.Get("similarity").Str()]
	quantization := f.Get("quantization").Str()
	switch {
	case !whole:
		return badSearch("\"%s.numDimensions\" must be an integer", where)
	case dims < 1 || dims > maxDims:
		return badSearch("\"%s.numDimensions\" must be within bounds [1..%d]", where, maxDims)
	case !similar:
		return badSearch("\"%s.similarity\" must be one of [euclidean, dotProduct, cosine]", where)
	case f.Get("quantization").IsDefined() && quantization != "none" && quantization != "scalar" &&
		quantization != "binary":
		return badSearch("\"%s.quantization\" must be one of [none, scalar, binary]", where)
	case quantization == "binary" && dims%8 != 0:
		return badSearch("\"%s\" numDimensions %d must be a multiple of 8 for binary quantization", where, dims)
	}
	return nil
}

// plainPath reports whether a path has only names that a search can follow.
func plainPath(path string) bool {
	for _, name := range strings.Split(path, ".") {
		if name == "" || name[0] == '$' || strings.IndexByte(name, 0) >= 0 {
			return false
		}
	}
	return true
}
