package mongoapi

import (
	"encoding/hex"
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// The commands about search indexes. Only those of type vectorSearch can be created; those of full-text search are
// refused as by a server without Atlas.

// defaultSearchName is the name of an index that was created without one.
const defaultSearchName = "default"

// searched opens the collection of a command about search indexes.
func (r *request) searched() (*coll, error) {
	name, k, err := r.openNamed()
	if err == nil && k == nil {
		err = merr.New(merr.NamespaceNotFound, "Collection '%s.%s' does not exist.", r.db, name)
	}
	return k, err
}

// changeSearch replaces the search indexes of a collection by what f makes of them. f may be called several times.
func (r *request) changeSearch(k *coll, f func(list []value.Value) ([]value.Value, error)) error {
	_, err := r.s.eng.ChangeContainer(r.ctx, k.Database(), k.ID(), func(s *core.ContainerSpec) error {
		list, err := f(slices.Clone(indexes.Search(s)))
		if err == nil {
			indexes.SetSearch(s, list)
		}
		return err
	})
	return err
}

// newSearch is an index that createSearchIndexes is to make.
type newSearch struct {
	name       string
	definition value.Value
}

// searchSpec reads an element of the argument indexes.
func searchSpec(spec value.Value) (x newSearch, err error) {
	const where = "createSearchIndexes.indexes"
	if err := (args.Set{"name": args.String, "type": args.String, "definition": args.Object}).Check(where,
		spec); err != nil {
		return x, err
	}
	if t := args.Given(spec, "type").Str(); t != "vectorSearch" {
		if t != "" && t != "search" {
			return x, merr.New(merr.BadValue, "\"indexes.type\" must be one of [search, vectorSearch]")
		}
		return x, merr.New(merr.CommandNotSupported, "Search index commands are only supported with Atlas.")
	}
	x.definition = args.Given(spec, "definition")
	if !x.definition.IsDefined() {
		return x, merr.New(merr.MissingField, "BSON field '%s.definition' is missing but a required field", where)
	}
	if x.name = args.Given(spec, "name").Str(); x.name == "" {
		x.name = defaultSearchName
	}
	return x, indexes.CheckSearch(x.definition)
}

func createSearchIndexes(r *request, dst []byte) ([]byte, error) {
	list := args.Given(r.body, "indexes")
	if !list.IsDefined() {
		return dst, merr.New(merr.MissingField, "BSON field 'createSearchIndexes.indexes' is missing but a required "+
			"field")
	}
	var made []newSearch
	for _, spec := range value.Elements(list) {
		x, err := searchSpec(spec)
		if err != nil {
			return dst, err
		}
		made = append(made, x)
	}
	k, err := r.searched()
	if err != nil {
		return dst, err
	}
	ids := make([]string, len(made))
	err = r.changeSearch(k, func(list []value.Value) ([]value.Value, error) {
		for i, x := range made {
			at := slices.IndexFunc(list, func(o value.Value) bool { return o.Get("name").Str() == x.name })
			if at >= 0 {
				if value.CompareBSON(list[at].Get("definition"), x.definition) != 0 {
					return nil, merr.New(merr.IndexAlreadyExists, "Index %s already exists with a different "+
						"definition. Drop it first if needed.", x.name)
				}
				ids[i] = list[at].Get("id").Str()
				continue
			}
			ids[i] = hex.EncodeToString(r.s.ids.next().Bytes())
			list = append(list, indexes.StoredSearch(ids[i], x.name, 0, r.s.clk.Now().UnixMilli(), x.definition))
		}
		if len(list) > indexes.Max {
			return nil, indexes.CannotCreate("add index fails, too many search indexes for %s", k.namespace())
		}
		return list, nil
	})
	if err != nil {
		return dst, err
	}
	at, dst := bson.BeginArray(dst, "indexesCreated")
	for i, x := range made {
		ia, d := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, i))
		d = bson.AppendString(d, "id", ids[i])
		dst = bson.End(bson.AppendString(d, "name", x.name), ia)
	}
	return bson.End(dst, at), nil
}

// wantedSearch returns a test for the index that a command names, by its name or id.
func wantedSearch(command string, arg value.Value, namespace string) (is func(x value.Value) bool, missing error,
	err error) {
	name, id := args.Given(arg, "name"), args.Given(arg, "id")
	switch {
	case name.IsDefined() && id.IsDefined():
		return nil, nil, merr.New(merr.InvalidOptions, "Cannot set both 'name' and 'id' for %s.", command)
	case name.IsDefined():
		return func(x value.Value) bool { return x.Get("name").Str() == name.Str() }, merr.New(merr.IndexNotFound,
			"No index with name %s exists in namespace %s", name.Str(), namespace), nil
	case id.IsDefined():
		return func(x value.Value) bool { return x.Get("id").Str() == id.Str() }, merr.New(merr.IndexNotFound,
			"No index with id %s exists in namespace %s", id.Str(), namespace), nil
	}
	return nil, nil, nil
}

// oneSearch is wantedSearch for a command that must name an index.
func (r *request) oneSearch() (k *coll, is func(x value.Value) bool, missing error, err error) {
	if k, err = r.searched(); err != nil {
		return nil, nil, nil, err
	}
	is, missing, err = wantedSearch(r.name, r.body, k.namespace())
	if err == nil && is == nil {
		err = merr.New(merr.InvalidOptions, "One of 'name' and 'id' is required for %s.", r.name)
	}
	return k, is, missing, err
}

func updateSearchIndex(r *request, dst []byte) ([]byte, error) {
	definition := args.Given(r.body, "definition")
	if !definition.IsDefined() {
		return dst, merr.New(merr.MissingField, "BSON field 'updateSearchIndex.definition' is missing but a required "+
			"field")
	}
	k, is, missing, err := r.oneSearch()
	if err != nil {
		return dst, err
	}
	if err := indexes.CheckSearch(definition); err != nil {
		return dst, err
	}
	return dst, r.changeSearch(k, func(list []value.Value) ([]value.Value, error) {
		at := slices.IndexFunc(list, is)
		if at < 0 {
			return nil, missing
		}
		x := list[at]
		list[at] = indexes.StoredSearch(x.Get("id").Str(), x.Get("name").Str(), x.Get("version").Int()+1,
			r.s.clk.Now().UnixMilli(), definition)
		return list, nil
	})
}

func dropSearchIndex(r *request, dst []byte) ([]byte, error) {
	k, is, missing, err := r.oneSearch()
	if err != nil {
		return dst, err
	}
	return dst, r.changeSearch(k, func(list []value.Value) ([]value.Value, error) {
		at := slices.IndexFunc(list, is)
		if at < 0 {
			return nil, missing
		}
		return slices.Delete(list, at, at+1), nil
	})
}

// shownSearches returns the search indexes of a collection as they are listed: all, or the one that spec names.
func shownSearches(k *coll, command string, spec value.Value) (out []value.Value, err error) {
	is, _, err := wantedSearch(command, spec, "")
	if err != nil || k == nil {
		return nil, err
	}
	for _, x := range indexes.Search(k.Spec()) {
		if is == nil || is(x) {
			out = append(out, indexes.ShownSearch(x))
		}
	}
	return out, nil
}

func listSearchIndexes(r *request, dst []byte) ([]byte, error) {
	k, err := r.searched()
	if err != nil {
		return dst, err
	}
	list, err := shownSearches(k, r.name, r.body)
	if err != nil {
		return dst, err
	}
	return r.list(dst, k.namespace(), list)
}

// SearchIndexes implements agg.Host.
func (h *host) SearchIndexes(spec value.Value) ([]value.Value, error) {
	if h.coll == noCollection {
		return nil, merr.New(merr.InvalidNamespace, "$listSearchIndexes must be run against a collection")
	}
	return shownSearches(h.k, "$listSearchIndexes", spec)
}

// vectorIndex implements agg.Options.Vectors.
func (r *request) vectorIndex(name, index, path string) (*agg.VectorIndex, error) {
	k, err := r.open(r.db, name)
	if k == nil || err != nil {
		return nil, err
	}
	if index != "" {
		for _, x := range indexes.Search(k.Spec()) {
			if x.Get("name").Str() == index {
				return indexes.SearchVectors(x), nil
			}
		}
	}
	for _, d := range k.indexSpecs() {
		if x := indexes.CosmosVectors(d, path); x != nil && (index == "" || d.Get("name").Str() == index) {
			return x, nil
		}
	}
	return nil, nil
}
