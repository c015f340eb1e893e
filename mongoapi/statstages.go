package mongoapi

import (
	"slices"
	"sort"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// CollStats implements agg.Host.
func (h *host) CollStats(spec value.Value) ([]value.Value, error) {
	oplog := h.r.hasOplog(h.db, h.coll)
	switch {
	case h.view && (spec.Get("storageStats").IsDefined() || spec.Get("count").IsDefined()):
		return nil, notOnView(h.db, h.coll)
	case h.k == nil && !oplog && !h.view:
		return nil, merr.New(merr.NamespaceNotFound, "Unable to retrieve storageStats in $collStats stage :: caused "+
			"by :: Collection [%s.%s] not found.", h.db, h.coll)
	}
	ns := h.db + "." + h.coll
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "ns", ns)
	b = bson.AppendString(b, "host", h.r.c.nc.LocalAddr().String())
	b = bson.AppendDate(b, "localTime", h.r.s.clk.Now().UnixMilli())
	if s := spec.Get("latencyStats"); s.IsDefined() {
		b = h.r.s.tops.appendLatency(b, ns, s.Get("histograms").Bool())
	}
	if s := spec.Get("storageStats"); s.IsDefined() {
		stats := h.r.appendOplogStats
		if !oplog {
			stats = func(dst []byte, scale value.Value) ([]byte, error) { return h.k.appendStats(h.r.ctx, dst, scale) }
		}
		sa, sb := bson.BeginObject(b, "storageStats")
		sb, err := stats(sb, args.Given(s, "scale"))
		if err != nil {
			return nil, err
		}
		b = bson.End(sb, sa)
	}
	if spec.Get("count").IsDefined() {
		if oplog {
			return nil, merr.NotSupported("a count of the oplog")
		}
		n, err := h.k.Count(h.r.ctx)
		if err == nil {
			err = h.k.Settle()
		}
		if err != nil {
			return nil, err
		}
		b = value.AppendElement(b, "count", value.IntOf(n))
	}
	return []value.Value{value.ObjectOf(bson.End(b, at))}, nil
}

// IndexStats implements agg.Host.
func (h *host) IndexStats() ([]value.Value, error) {
	if h.k == nil {
		return nil, nil
	}
	var out []value.Value
	all := append([]value.Value{indexes.OnID()}, h.k.indexSpecs()...)
	uses := h.r.s.uses.of(h.k.Num())
	for _, s := range all {
		at, b := bson.Begin(nil)
		b = value.AppendElement(b, "name", s.Get("name"))
		b = value.AppendElement(b, "key", s.Get("key"))
		b = bson.AppendString(b, "host", h.r.c.nc.LocalAddr().String())
		aa, b := bson.BeginObject(b, "accesses")
		b = bson.AppendInt64(b, "ops", uses.count(s, all))
		b = bson.AppendDate(b, "since", h.r.s.began.UnixMilli())
		b = bson.End(b, aa)
		b = value.AppendElement(b, "spec", s)
		out = append(out, value.ObjectOf(bson.End(b, at)))
	}
	return out, nil
}

// ListCatalog implements agg.Host. It shows what listCollections and listIndexes do, and nothing of how it is stored.
func (h *host) ListCatalog() (out []value.Value, err error) {
	if h.coll != noCollection {
		return h.listCatalog(nil, h.db, h.coll)
	}
	if h.db != "admin" {
		return nil, merr.New(merr.InvalidNamespace, "Collectionless $listCatalog must be run against the "+
			"'admin' database")
	}
	dbs, err := h.r.s.eng.Databases(h.r.ctx)
	if err != nil {
		return nil, err
	}
	sort.Slice(dbs, func(i, j int) bool { return dbs[i].ID < dbs[j].ID })
	for _, d := range dbs {
		if out, err = h.listCatalog(out, d.ID, ""); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// listCatalog appends the collections and views of a database, all or the one of a name.
func (h *host) listCatalog(out []value.Value, db, only string) ([]value.Value, error) {
	begin := func(name, kind string) (int, []byte) {
		at, b := bson.Begin(nil)
		return at, bson.AppendString(bson.AppendString(bson.AppendString(b, "db", db), "name", name), "type", kind)
	}
	for d, err := range h.r.s.eng.Definitions(h.r.ctx, db, 0) {
		if status.Is(err, status.NotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		if only != "" && d.ID() != only {
			continue
		}
		var options []byte
		if o := optionsOf(d).Bytes(); len(o) > 0 {
			options = o[4 : len(o)-1]
		}
		ns := db + "." + d.ID()
		at, b := begin(d.ID(), kindOf(options))
		ma, b := bson.BeginObject(b, "md")
		oa, b := bson.BeginObject(bson.AppendString(b, "ns", ns), "options")
		b = bson.End(append(value.AppendElement(b, "uuid", changes.UUIDOf(d.RID())), options...), oa)
		var specs []value.Value
		for _, s := range append([]value.Value{idIndexOf(options)}, indexSpecsOf(d)...) {
			sa, sb := bson.Begin(nil)
			sb = bson.AppendBool(value.AppendElement(sb, "spec", s), "ready", true)
			specs = append(specs, value.ObjectOf(bson.End(sb, sa)))
		}
		b = bson.End(value.AppendElement(b, "indexes", value.MakeArray(specs)), ma)
		out = append(out, value.ObjectOf(bson.End(bson.AppendString(b, "ns", ns), at)))
	}
	r := *h.r
	r.db = db
	views, err := r.listedViews(false)
	for _, v := range views {
		name, o := v.Get("name").Str(), v.Get("options")
		if only != "" && name != only {
			continue
		}
		at, b := begin(name, "view")
		b = bson.AppendString(bson.AppendString(b, "ns", db+"."+name), "_id", db+"."+name)
		b = value.AppendElement(b, "viewOn", o.Get("viewOn"))
		out = append(out, value.ObjectOf(bson.End(value.AppendElement(b, "pipeline", o.Get("pipeline")), at)))
	}
	return out, err
}

// Sessions implements agg.Host. The sessions are those whose last retryable write or transaction is remembered.
func (h *host) Sessions(local bool, of agg.SessionUsers) ([]value.Value, error) {
	switch {
	case local && h.coll != noCollection:
		return nil, merr.New(merr.InvalidNamespace, "$listLocalSessions must be run against the database with "+
			"{aggregate: 1}, not a collection")
	case !local && (h.db != "config" || h.coll != "system.sessions"):
		return nil, merr.New(merr.InvalidNamespace, "$listSessions may only be run against config.system.sessions")
	}
	var out []value.Value
	for _, x := range h.r.s.sessions.all() {
		user := fullName(x.user)
		if !of.All && (len(of.Names) == 0 && x.user != h.r.c.user || len(of.Names) > 0 &&
			!slices.Contains(of.Names, user)) {
			continue
		}
		at, b := bson.Begin(nil)
		ia, b := bson.BeginObject(b, "_id")
		b = value.AppendElement(b, "id", value.UUIDOf(x.id[:]))
		b = bson.End(value.AppendElement(b, "uid", uidOf(x.user)), ia)
		b = bson.AppendDate(b, "lastUse", x.last.UnixMilli())
		ua, b := bson.BeginObject(b, "user")
		b = bson.End(bson.AppendString(b, "name", user), ua)
		out = append(out, value.ObjectOf(bson.End(b, at)))
	}
	return out, nil
}
