package mongoapi

import (
	"slices"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
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

// IndexStats implements agg.Host. Uses of indexes aren't counted: ops is 0.
func (h *host) IndexStats() ([]value.Value, error) {
	if h.k == nil {
		return nil, nil
	}
	var out []value.Value
	for _, s := range append([]value.Value{indexes.OnID()}, h.k.indexSpecs()...) {
		at, b := bson.Begin(nil)
		b = value.AppendElement(b, "name", s.Get("name"))
		b = value.AppendElement(b, "key", s.Get("key"))
		b = bson.AppendString(b, "host", h.r.c.nc.LocalAddr().String())
		aa, b := bson.BeginObject(b, "accesses")
		b = bson.AppendInt64(b, "ops", 0)
		b = bson.AppendDate(b, "since", h.r.s.began.UnixMilli())
		b = bson.End(b, aa)
		b = value.AppendElement(b, "spec", s)
		out = append(out, value.ObjectOf(bson.End(b, at)))
	}
	return out, nil
}

// CurrentOp implements agg.Host.
func (h *host) CurrentOp() ([]value.Value, error) {
	if h.db != "admin" || h.coll != noCollection {
		return nil, merr.New(merr.InvalidNamespace, "$currentOp must be run against the 'admin' database with "+
			"{aggregate: 1}")
	}
	return append(h.r.c.home.operations(), h.r.s.idleTransactions()...), nil
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
