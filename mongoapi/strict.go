package mongoapi

import (
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// With Options.Strict the server refuses what the service's API for MongoDB refuses and this server could answer, so
// that a program that works here works there. Its lists are those of the service's page on supported features for
// version 7.0. What the service merely does differently isn't changed.

// strictCommands are the commands that the service doesn't have.
var strictCommands = map[string]bool{
	"bulkWrite": true, "collMod": true, "connPoolStats": true, "connectionStatus": true, "dataSize": true,
	"datasize": true, "fsync": true, "fsyncUnlock": true, "getDiagnosticData": true, "killAllSessions": true,
	"killAllSessionsByPattern": true, "killOp": true, "killSessions": true, "listCommands": true,
	"getClusterParameter": true, "planCacheClear": true, "planCacheClearFilters": true,
	"planCacheListFilters": true, "setClusterParameter": true, "profile": true,
	"refreshSessions": true, "renameCollection": true, "serverStatus": true,
	"setFeatureCompatibilityVersion": true, "setParameter": true, "createSearchIndexes": true,
	"dropSearchIndex": true, "listSearchIndexes": true, "updateSearchIndex": true, "shutdown": true,
	"startSession": true, "validate": true,
}

// strictStages are the stages that the service has.
var strictStages = map[string]bool{
	"$addFields": true, "$changeStream": true, "$count": true, "$facet": true, "$geoNear": true, "$group": true,
	"$limit": true, "$lookup": true, "$match": true, "$merge": true, "$out": true, "$planCacheStats": true,
	"$project": true, "$redact": true, "$replaceRoot": true, "$replaceWith": true, "$sample": true, "$set": true,
	"$skip": true, "$sort": true, "$sortByCount": true, "$unset": true, "$unwind": true,
}

// strictOperators are the operators of filters that the service doesn't have.
var strictOperators = map[string]bool{
	"$bitsAllClear": true, "$bitsAllSet": true, "$bitsAnyClear": true, "$bitsAnySet": true, "$box": true,
	"$center": true, "$centerSphere": true, "$jsonSchema": true, "$polygon": true, "$text": true, "$where": true,
}

// maxStrictFields is the largest number of fields in a compound index of the service.
const maxStrictFields = 8

// strict refuses what the service refuses.
func (r *request) strict(def command) error {
	if strictCommands[r.name] || def.users {
		return merr.New(merr.CommandNotSupported, "Command is not supported")
	}
	b := r.body
	switch r.name {
	case "find":
		return strictFilter(b.Get("filter"))
	case "explain":
		if err := strictFilter(r.arg.Get("filter")); err != nil {
			return err
		}
		return strictPipeline(r.arg.Get("pipeline"))
	case "count", "distinct":
		return strictFilter(b.Get("query"))
	case "findAndModify", "findandmodify":
		if s := b.Get("sort"); s.Kind() == value.Object && s.Len() > 1 {
			return merr.New(merr.BadValue, "The sort of findAndModify can only have one field")
		}
		return r.strictTarget(b.Get("query"))
	case "aggregate":
		return strictPipeline(b.Get("pipeline"))
	case "update", "delete":
		return r.strictStatements()
	case "createIndexes":
		return r.strictIndexes()
	}
	return nil
}

// strictFilter refuses operators that the service doesn't have.
func strictFilter(f value.Value) error {
	for it := f.Iter(); f.Kind() == value.Object && it.Next(); {
		key, v := string(it.Key()), it.Value()
		if strictOperators[key] {
			return merr.New(merr.BadValue, "unknown operator: %s", key)
		}
		list := []value.Value{v}
		if v.Kind() == value.Array && strings.HasPrefix(key, "$") {
			list = value.Elements(v)
		}
		for _, x := range list {
			if err := strictFilter(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// strictPipeline refuses stages that the service doesn't have, and pipelines in $lookup.
func strictPipeline(p value.Value) error {
	if p.Kind() != value.Array {
		return nil // which is refused for that
	}
	stages := value.Elements(p)
	for i, st := range stages {
		it := st.Iter()
		if st.Kind() != value.Object || !it.Next() {
			return nil
		}
		name, arg := string(it.Key()), it.Value()
		var err error
		switch {
		case strings.HasPrefix(name, "$") && !strictStages[name]:
			err = merr.New(merr.UnrecognizedStage, "Unrecognized pipeline stage name: '%s'", name)
		case name == "$match":
			err = strictFilter(arg)
		case name == "$lookup" && (arg.Get("let").IsDefined() || arg.Get("pipeline").IsDefined()):
			err = merr.New(merr.BadValue, "let is not supported")
		case name == "$changeStream":
			err = strictStream(arg, stages[i+1:])
		case name == "$facet":
			for f := arg.Iter(); arg.Kind() == value.Object && f.Next() && err == nil; {
				err = strictPipeline(f.Value())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// strictStream checks a change stream: the service wants the full documents, a filter of the operations, and a
// projection of its four fields.
func strictStream(arg value.Value, rest []value.Value) error {
	if len(rest) < 2 || !rest[0].Get("$match").Get("operationType").IsDefined() ||
		rest[1].Get("$project").Kind() != value.Object {
		return merr.New(merr.BadValue, "Change stream must be followed by a match and then a project stage")
	}
	for it := rest[1].Get("$project").Iter(); it.Next(); {
		switch string(it.Key()) {
		case "_id", "fullDocument", "ns", "documentKey":
		default:
			return merr.New(merr.BadValue, "Change stream must be followed by a match and then a project stage")
		}
	}
	if arg.Get("fullDocument").Str() != "updateLookup" {
		return merr.New(merr.BadValue, "Change streams are only supported with the option fullDocument: updateLookup")
	}
	return nil
}

// strictStatements checks the statements of an update or a delete.
func (r *request) strictStatements() error {
	stmts, err := r.docs(r.name + "s")
	if err != nil {
		return nil // the command is refused for that
	}
	for _, st := range stmts {
		q := st.Get("q")
		one := !args.Flag(st, "multi", false)
		if r.name == "delete" {
			one = st.Get("limit").IsNumber() && st.Get("limit").Int() == 1
		}
		err := strictFilter(q)
		if err == nil && one {
			err = r.strictTarget(q)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// strictTarget refuses a change of one document of a sharded collection whose filter doesn't have the shard key.
func (r *request) strictTarget(q value.Value) error {
	if err := strictFilter(q); err != nil {
		return err
	}
	k, err := r.open(r.db, r.arg.Str())
	if k == nil || err != nil || k.byID || q.Kind() != value.Object {
		return err
	}
	for _, segs := range k.keys {
		if v := q.Get(strings.Join(segs, ".")); !v.IsDefined() {
			return merr.New(merr.ShardKeyNotFound, "query in command must target a single shard key")
		}
	}
	return nil
}

// strictIndexes checks the indexes of createIndexes.
func (r *request) strictIndexes() error {
	k, err := r.open(r.db, r.arg.Str())
	if err != nil {
		return err
	}
	for _, spec := range value.Elements(r.body.Get("indexes")) {
		if err := r.strictIndex(k, spec); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) strictIndex(k *coll, spec value.Value) error {
	key := spec.Get("key")
	if key.Kind() != value.Object {
		return nil
	}
	unique, ttl := args.Flag(spec, "unique", false), spec.Get("expireAfterSeconds").IsDefined()
	first := ""
	for it := key.Iter(); it.Next(); {
		name := string(it.Key())
		if first == "" {
			first = name
		}
		wildcard := name == "$**" || strings.HasSuffix(name, ".$**")
		switch kind := it.Value().Str(); {
		case kind != "" && kind != "2dsphere":
			return indexes.CannotCreate("Indexes of type %s are not supported", kind)
		case wildcard && (key.Len() > 1 || unique || ttl || spec.Get("wildcardProjection").IsDefined()):
			return indexes.CannotCreate("Wildcard indexes do not support compound, TTL or unique indexes, and no " +
				"projection")
		}
	}
	switch {
	case key.Len() > maxStrictFields:
		return indexes.CannotCreate("Compound indexes can have at most 8 fields")
	case args.Given(spec, "collation").IsDefined():
		return indexes.CannotCreate("Case insensitive indexes are not supported")
	case args.Flag(spec, "sparse", false):
		return indexes.CannotCreate("Sparse indexes are not supported")
	case args.Given(spec, "partialFilterExpression").IsDefined() && !unique:
		return indexes.CannotCreate("Only unique indexes can be partial")
	case ttl && first != "_ts":
		return merr.New(merr.BadValue, "The 'expireAfterSeconds' option is supported on '_ts' field only")
	case !unique || k == nil:
		return nil
	}
	if shard := k.shardKey(); shard != "" && first != shard {
		return indexes.CannotCreate("cannot create unique index over %s with shard key pattern { %s : 1.0 }",
			shownKey(key), shard)
	}
	for _, s := range k.indexSpecs() {
		if s.Get("name").Str() == spec.Get("name").Str() {
			return nil // it exists
		}
	}
	n, err := k.Count(r.ctx)
	if err != nil {
		return err
	}
	if err := k.Settle(); err != nil {
		return err
	}
	if n > 0 {
		return indexes.CannotCreate("The unique index cannot be modified. To change the unique index, remove the " +
			"collection and re-create a new one.")
	}
	return nil
}

// shardKey returns the shard key; "" if the collection has none.
func (k *coll) shardKey() string {
	if k.byID || len(k.keys) == 0 {
		return ""
	}
	return strings.Join(k.keys[0], ".")
}

// shownKey returns the key of an index as the service's errors show it.
func shownKey(key value.Value) string {
	var b strings.Builder
	for it := key.Iter(); it.Next(); {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(it.Key()) + " : 1.0")
	}
	return "{" + b.String() + "}"
}
