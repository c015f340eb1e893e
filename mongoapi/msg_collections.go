package mongoapi

import (
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/rights"
	"github.com/orrerydb/orrery/mongoapi/users"
)

func drop(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	k, err := r.lookUp(r.db, name)
	if err != nil {
		return dst, err
	}
	if k == nil {
		if found, err := r.dropView(name); !found || err != nil {
			return dst, err
		}
		return bson.AppendString(dst, "ns", r.db+"."+name), nil
	}
	if err := r.s.eng.DropContainer(r.ctx, r.db, name); err != nil && !status.Is(err, status.NotFound) {
		return dst, err
	}
	dst = bson.AppendInt32(dst, "nIndexesWas", int32(len(k.indexSpecs())+1))
	return bson.AppendString(dst, "ns", k.namespace()), nil
}

func dropDatabase(r *request, dst []byte) ([]byte, error) {
	if r.db == users.DB {
		return dst, merr.New(merr.IllegalOperation, "Dropping the 'admin' database is prohibited.")
	}
	err := r.s.eng.DropDatabase(r.ctx, r.db)
	if status.Is(err, status.NotFound) {
		return dst, nil
	}
	return bson.AppendString(dst, "dropped", r.db), err
}

func splitNS(v value.Value) (db, coll string, err error) {
	db, coll, ok := strings.Cut(v.Str(), ".")
	if v.Kind() != value.String || !ok {
		return "", "", merr.New(merr.InvalidNamespace, "Invalid namespace specified '%s'", v.Str())
	}
	if err := validDB(db); err != nil {
		return "", "", err
	}
	return db, coll, validCollection(db, coll)
}

func renameCollection(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "renameCollection may only be run against the admin database.")
	}
	db, from, err := splitNS(r.arg)
	if err != nil {
		return dst, err
	}
	toDB, to, err := splitNS(r.body.Get("to"))
	if err != nil {
		return dst, err
	}
	if db != toDB {
		return dst, merr.NotSupported("renaming a collection into another database")
	}
	if from == to {
		return dst, merr.New(merr.IllegalOperation, "Can't rename a collection to itself")
	}
	for _, name := range []string{from, to} {
		d, err := r.viewDoc(db, name)
		switch {
		case err != nil:
			return dst, err
		case d.IsDefined() && name == from:
			return dst, merr.New(merr.NotSupportedOnView, "cannot rename view: %s.%s", db, name)
		case d.IsDefined():
			return dst, merr.New(merr.NamespaceExists, "a view already exists with that name: %s.%s", db, name)
		}
	}
	k, err := r.open(db, from)
	if err != nil {
		return dst, err
	}
	if k == nil {
		return dst, merr.New(merr.NamespaceNotFound, "Source collection %s.%s does not exist", db, from)
	}
	_, err = r.s.eng.RenameContainer(r.ctx, db, from, to, expr.Truthy(r.body.Get("dropTarget")))
	if status.Is(err, status.Conflict) {
		err = merr.New(merr.NamespaceExists, "target namespace exists")
	}
	return dst, err
}

// keepMatching returns the documents that match the command's filter.
func (r *request) keepMatching(docs []value.Value) ([]value.Value, error) {
	f, err := filter.Compile(args.Given(r.body, "filter"), r.filterOptions(nil))
	if err != nil {
		return nil, err
	}
	out := docs[:0]
	for _, d := range docs {
		ok, err := f.Match(r.exprEnv(), d)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, d)
		}
	}
	return out, nil
}

func listCollections(r *request, dst []byte) ([]byte, error) {
	nameOnly := args.Flag(r.body, "nameOnly", false)
	var docs []value.Value
	var only *rights.Set // nil: everything is shown
	if who := r.limited(); who != nil && !who.Set.Allows(rights.Resource{DB: r.db}, "listCollections") ||
		who != nil && args.Flag(r.body, "authorizedCollections", false) {
		only = who.Set
	}
	names, err := r.s.eng.Names(r.ctx, r.db, "")
	if err != nil {
		return dst, err
	}
	options := map[string][]byte{} // elements; also with nameOnly, because the type is one of them
	for d, err := range r.s.eng.Definitions(r.ctx, r.db, 0) {
		if status.Is(err, status.NotFound) {
			break
		}
		if err != nil {
			return dst, err
		}
		if b := optionsOf(d).Bytes(); len(b) > 0 {
			options[d.ID()] = b[4 : len(b)-1]
		}
	}
	for c := range names {
		if only != nil && !only.SeesCollection(r.db, c.ID) {
			continue
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "name", c.ID)
		b = bson.AppendString(b, "type", kindOf(options[c.ID]))
		if !nameOnly {
			// In MongoDB a time series is a view of its buckets, which have the UUID and the indexes.
			series := kindOf(options[c.ID]) == "timeseries"
			oa, ob := bson.BeginObject(b, "options")
			b = bson.End(append(ob, options[c.ID]...), oa)
			ia, ib := bson.BeginObject(b, "info")
			ib = bson.AppendBool(ib, "readOnly", false)
			if !series {
				ib = value.AppendElement(ib, "uuid", changes.UUIDOf(c.RID))
			}
			b = bson.End(ib, ia)
			if !series {
				b = value.AppendElement(b, "idIndex", idIndexOf(options[c.ID]))
			}
		}
		docs = append(docs, value.ObjectOf(bson.End(b, at)))
	}
	views, err := r.listedViews(nameOnly)
	if err != nil {
		return dst, err
	}
	for _, v := range views {
		if only == nil || only.SeesCollection(r.db, v.Get("name").Str()) {
			docs = append(docs, v)
		}
	}
	if r.db == "local" && !r.s.o.Standalone {
		docs = r.appendLocalInfo(docs, nameOnly)
	}
	if docs, err = r.keepMatching(docs); err != nil {
		return dst, err
	}
	return r.list(dst, r.db+".$cmd.listCollections", docs)
}

func listDatabases(r *request, dst []byte) ([]byte, error) {
	if r.db != "admin" {
		return dst, merr.New(merr.Unauthorized, "listDatabases may only be run against the admin database.")
	}
	nameOnly := args.Flag(r.body, "nameOnly", false)
	only, err := r.seenDatabases()
	if err != nil {
		return dst, err
	}
	var docs []value.Value
	total := int64(0)
	dbs, err := r.s.eng.Databases(r.ctx)
	if err != nil {
		return dst, err
	}
	sort.Slice(dbs, func(i, j int) bool { return dbs[i].ID < dbs[j].ID })
	for _, d := range dbs {
		if only != nil && !only.Sees(d.ID) {
			continue
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "name", d.ID)
		if !nameOnly {
			size, err := r.databaseBytes(d.ID)
			if err != nil {
				return dst, err
			}
			total += size
			b = bson.AppendInt64(b, "sizeOnDisk", size)
			n, err := r.s.eng.ContainerCount(r.ctx, d.ID)
			if err != nil {
				return dst, err
			}
			b = bson.AppendBool(b, "empty", n == 0)
		}
		docs = append(docs, value.ObjectOf(bson.End(b, at)))
	}
	if docs, err = r.keepMatching(docs); err != nil {
		return dst, err
	}
	dst = value.AppendElement(dst, "databases", value.MakeArray(docs))
	if !nameOnly {
		dst = bson.AppendInt64(dst, "totalSize", total)
		dst = bson.AppendInt64(dst, "totalSizeMb", total>>20)
	}
	return dst, nil
}

// seenDatabases returns the rights that limit which databases are listed; nil: all are.
func (r *request) seenDatabases() (only *rights.Set, err error) {
	who := r.limited()
	if who == nil {
		return nil, nil
	}
	authorized := args.Given(r.body, "authorizedDatabases")
	all := who.Set.Allows(rights.Resource{Cluster: true}, "listDatabases")
	switch {
	case authorized.IsDefined() && !expr.Truthy(authorized) && !all:
		return nil, r.notAuthorized()
	case !all, expr.Truthy(authorized):
		return who.Set, nil
	}
	return nil, nil
}

// databaseBytes returns the size of a database's items.
func (r *request) databaseBytes(db string) (size int64, err error) {
	for c, err := range r.s.eng.Stats(r.ctx, db) {
		if err == nil {
			err = c.Settle()
		}
		if err != nil {
			return 0, err
		}
		size += c.Bytes
	}
	return size, nil
}
