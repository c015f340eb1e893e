package mongoapi

import (
	"cmp"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// keyPath converts a shard key's dotted path to the container's partition key path.
func keyPath(field string) (string, error) {
	if field == "_id" {
		return idPath, nil
	}
	segs := strings.Split(field, ".")
	for _, s := range segs {
		if s == "" || s[0] == '$' || strings.ContainsAny(s, "/\"") {
			return "", merr.New(merr.BadValue, "the shard key '%s' is not a plain path", field)
		}
	}
	if segs[0] == "id" {
		return "", merr.NotSupported("the field id as a shard key (the other APIs' name of _id)")
	}
	return "/" + strings.Join(segs, "/"), nil
}

func shardCollection(r *request, dst []byte) ([]byte, error) {
	db, name, err := splitNS(r.arg)
	if err != nil {
		return dst, err
	}
	key := r.body.Get("key")
	if key.Kind() != value.Object || key.Len() == 0 {
		return dst, merr.New(merr.BadValue, "shardCollection needs a key document")
	}
	if key.Len() > 1 {
		return dst, merr.NotSupported("a compound shard key")
	}
	it := key.Iter()
	it.Next()
	if v := it.Value(); !v.IsNumber() && v.Str() != "hashed" {
		return dst, merr.New(merr.BadValue,
			"Shard key %s can contain either a single 'hashed' field or a number", it.Key())
	}
	path, err := keyPath(string(it.Key()))
	if err != nil {
		return dst, err
	}
	if args.Flag(r.body, "unique", false) {
		return dst, indexes.CannotCreate("unique indexes on other fields than _id are not supported by this server")
	}
	if err := r.shard(db, name, newSpec(name, path)); err != nil {
		return dst, err
	}
	r.saidOK = true
	dst = bson.AppendString(dst, "_t", "ShardCollectionResponse")
	dst = bson.AppendInt32(dst, "ok", 1)
	return bson.AppendString(dst, "collectionsharded", db+"."+name), nil
}

// shard creates a collection with a shard key. An empty existing collection is replaced. One with the same key stays.
func (r *request) shard(db, name string, spec core.ContainerSpec) error {
	d, err := r.s.eng.EnsureDatabase(r.ctx, db)
	if err != nil {
		return err
	}
	spec.Throughput = core.ThroughputIn(d)
	spec.Event = eventOf("shardCollection", shardDescription(r.body))
	old, err := r.open(db, name)
	if err != nil {
		return err
	}
	if old != nil && old.Spec().Capped != nil {
		return merr.New(merr.InvalidOptions, "can't shard a capped collection")
	}
	if old != nil {
		have := old.Spec().PartitionKey.Paths
		if len(have) == 1 && have[0] == spec.PartitionKey.Paths[0] {
			_, err := r.s.eng.ChangeContainer(r.ctx, db, name, func(s *core.ContainerSpec) error {
				s.Event = spec.Event
				return nil
			})
			return err
		}
		n, err := old.Count(r.ctx)
		if err != nil {
			return err
		}
		if !old.byID || n > 0 || old.Spec().Origin != "mongo" {
			if err := old.Settle(); err != nil {
				return err
			}
			return merr.New(merr.IllegalOperation,
				"the collection %s.%s exists: its shard key is set when it is made", db, name)
		}
		spec.Properties, spec.Throughput, spec.DefaultTTL = old.Spec().Properties, old.Spec().Throughput,
			old.Spec().DefaultTTL
		spec.LogMinutes, spec.Images = old.Spec().LogMinutes, old.Spec().Images
		if err := setIndexes(&spec, old.indexSpecs(), old.indexSpecs()); err != nil {
			return err
		}
		if err := r.s.eng.DropContainer(r.ctx, db, name); err != nil && !status.Is(err, status.NotFound) {
			return err
		}
	}
	_, err = r.s.eng.CreateContainer(r.ctx, db, spec)
	if status.Is(err, status.Conflict) {
		return merr.New(merr.NamespaceExists, "Collection %s.%s already exists.", db, name)
	}
	return err
}

// throughput reads offerThroughput or autoScaleSettings of a custom action. given is false if both are absent.
func (r *request) throughput() (t core.Throughput, given bool, err error) {
	if v := r.body.Get("offerThroughput"); v.IsDefined() {
		n, ok := num.ToInt64(v, false)
		if !ok || n < core.MinThroughput || n > core.MaxThroughput {
			return t, false, merr.New(merr.BadValue, "offerThroughput must be an integer between %d and %d",
				core.MinThroughput, core.MaxThroughput)
		}
		t.Manual, given = int(n), true
	}
	if v := r.body.Get("autoScaleSettings"); v.IsDefined() {
		n, ok := num.ToInt64(v.Get("maxThroughput"), false)
		if !ok || n < core.MinAutoscale || n > core.MaxThroughput || given {
			return t, false, merr.New(merr.BadValue, "autoScaleSettings.maxThroughput must be an integer between %d "+
				"and %d, without offerThroughput", core.MinAutoscale, core.MaxThroughput)
		}
		t.AutoscaleMax, given = int(n), true
	}
	if given {
		err = core.CheckThroughput(t, 0)
	}
	return t, given, err
}

// lowered refuses a throughput below the least one of what has the throughput old and serves held.
func lowered(t, old core.Throughput, held core.Held) error {
	if t.Max() >= old.Max() {
		return nil
	}
	return core.CheckThroughput(t, core.LeastThroughput(core.Throughput{Manual: t.Manual, AutoscaleMax: t.AutoscaleMax,
		Highest: old.Ever()}, held))
}

// unsharded refuses a throughput that needs a shard key.
func unsharded(path string, t core.Throughput) error {
	if path == idPath && t.Max() > core.MaxFixed {
		return merr.New(merr.BadValue, "A collection with more than %d RU/s needs a shardKey.", core.MaxFixed)
	}
	return nil
}

// customAction runs the service's extension commands.
func customAction(r *request, dst []byte) ([]byte, error) {
	t, given, err := r.throughput()
	if err != nil {
		return dst, err
	}
	switch action := r.arg.Str(); action {
	case "CreateDatabase":
		_, err := r.s.eng.CreateDatabase(r.ctx, core.DatabaseSpec{ID: r.db, Throughput: t})
		if status.Is(err, status.Conflict) {
			err = merr.New(merr.NamespaceExists, "Database %s already exists.", r.db)
		}
		return dst, err
	case "UpdateDatabase":
		if !given {
			return dst, merr.New(merr.BadValue, "UpdateDatabase needs offerThroughput or autoScaleSettings")
		}
		d, err := r.s.eng.Within(r.ctx).Database(r.db)
		if err != nil {
			return dst, err
		}
		held, err := r.s.eng.HeldBy(r.ctx, d)
		if err != nil {
			return dst, err
		}
		if err := lowered(t, d.Throughput, held); err != nil {
			return dst, err
		}
		_, err = r.s.eng.ReplaceDatabase(r.ctx, core.DatabaseSpec{ID: r.db, Throughput: t})
		return dst, err
	case "GetDatabase":
		d, err := r.s.eng.Within(r.ctx).Database(r.db)
		if err != nil {
			return dst, err
		}
		return appendThroughput(bson.AppendString(dst, "database", d.ID), d.Throughput), nil
	case "CreateCollection", "UpdateCollection", "GetCollection":
		return r.collectionAction(dst, action, t, given)
	case "GetChangeStreamTokens":
		return dst, merr.New(merr.CommandNotSupported, "GetChangeStreamTokens is not supported by this server")
	default:
		return dst, merr.New(merr.BadValue, "customAction '%s' is not known", action)
	}
}

func appendThroughput(dst []byte, t core.Throughput) []byte {
	if t.Manual > 0 {
		dst = bson.AppendInt32(dst, "provisionedThroughput", int32(t.Manual))
	}
	if t.AutoscaleMax > 0 {
		at, b := bson.BeginObject(dst, "autoScaleSettings")
		dst = bson.End(bson.AppendInt32(b, "maxThroughput", int32(t.AutoscaleMax)), at)
	}
	return dst
}

func (r *request) collectionAction(dst []byte, action string, t core.Throughput, given bool) ([]byte, error) {
	name := r.body.Get("collection").Str()
	if err := validCollection(r.db, name); err != nil {
		return dst, err
	}
	indexes, err := r.actionIndexes()
	if err != nil {
		return dst, err
	}
	if action == "CreateCollection" {
		return dst, r.createAction(name, t, indexes)
	}
	k, err := r.open(r.db, name)
	if err != nil {
		return dst, err
	}
	if k == nil {
		return dst, merr.New(merr.NamespaceNotFound, "ns not found: %s.%s", r.db, name)
	}
	if action == "UpdateCollection" {
		if given {
			size, err := k.Size(r.ctx)
			if err != nil {
				return dst, err
			}
			c, err := r.s.eng.Redefine(r.ctx, r.db, name, func(d core.Definition) (core.ContainerSpec, error) {
				s := d.Spec().Clone()
				err := cmp.Or(unsharded(s.PartitionKey.Paths[0], t), lowered(t, s.Throughput, core.Held{Bytes: size}))
				if err == nil && r.s.o.Strict {
					err = r.s.eng.CheckIdle(r.ctx, d, t)
				}
				s.Throughput = t
				return s, err
			})
			if err != nil {
				return dst, err
			}
			k = newColl(c)
		}
		if indexes != nil {
			return dst, r.replaceIndexes(k, indexes)
		}
		return dst, nil
	}
	dst = bson.AppendString(dst, "database", r.db)
	dst = bson.AppendString(dst, "collection", name)
	if !k.byID {
		at, b := bson.BeginObject(dst, "shardKeyDefinition")
		dst = bson.End(bson.AppendString(b, strings.Join(k.keys[0], "."), "hashed"), at)
	}
	return appendThroughput(dst, k.Spec().Throughput), nil
}

func (r *request) createAction(name string, t core.Throughput, indexes []value.Value) error {
	path := idPath
	if key := r.body.Get("shardKey"); key.IsDefined() {
		var err error
		if path, err = keyPath(key.Str()); err != nil {
			return err
		}
	}
	if err := unsharded(path, t); err != nil {
		return err
	}
	spec := newSpec(name, path)
	spec.Throughput = t
	d, err := r.s.eng.EnsureDatabase(r.ctx, r.db)
	if err != nil {
		return err
	}
	if t.Max() == 0 {
		spec.Throughput = core.ThroughputIn(d)
	}
	c, err := r.s.eng.CreateContainer(r.ctx, r.db, spec)
	if status.Is(err, status.Conflict) {
		return merr.New(merr.NamespaceExists, "Collection %s.%s already exists.", r.db, name)
	}
	if err == nil && len(indexes) > 0 {
		err = r.replaceIndexes(newColl(c), indexes)
	}
	return err
}

// actionIndexes reads the indexes of a custom action without the one on `_id`, which must be among them.
func (r *request) actionIndexes() ([]value.Value, error) {
	list := r.body.Get("indexes")
	if !list.IsDefined() {
		return nil, nil
	}
	out := []value.Value{}
	id := false
	for _, spec := range value.Elements(list) {
		d, err := indexes.Parse(spec, false)
		if err != nil {
			return nil, err
		}
		if d.Get("name").Str() == "_id_" {
			id = true
			continue
		}
		out = append(out, d)
	}
	if !id {
		return nil, merr.New(merr.BadValue, "The _id_ index must be among the indexes.")
	}
	return out, nil
}
