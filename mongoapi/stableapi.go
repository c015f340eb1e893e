package mongoapi

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// A client can declare that it uses the Stable API, version 1 (apiVersion). With apiStrict the server refuses the
// commands, stages, arguments and indexes that aren't in it (323). Nothing of version 1 is deprecated, so
// apiDeprecationErrors refuses nothing. The lists are those of MongoDB's manual and of its tests of API version 1.
//
// Example: {distinct: "c", key: "a", apiVersion: "1", apiStrict: true} is refused; without apiStrict it isn't.
type apiParams struct {
	version              string // "": not given
	strict, deprecations apiFlag
}

// apiFlag is a boolean that may be absent.
type apiFlag uint8

const (
	apiAbsent apiFlag = iota
	apiFalse
	apiTrue
)

// stableVersion is the only version of the Stable API.
const stableVersion = "1"

// stableCommands are the commands of the Stable API.
var stableCommands = map[string]bool{
	"abortTransaction": true, "aggregate": true, "authenticate": true, "bulkWrite": true, "collMod": true,
	"collStats": true, "commitTransaction": true, "count": true, "create": true, "createIndexes": true,
	"createRole": true, "createUser": true, "delete": true, "drop": true,
	"dropDatabase": true, "dropIndexes": true, "dropRole": true, "dropUser": true,
	"endSessions": true, "explain": true, "find": true, "findAndModify": true, "findandmodify": true,
	"getMore": true, "grantPrivilegesToRole": true, "grantRolesToRole": true, "grantRolesToUser": true,
	"hello": true, "insert": true, "killCursors": true, "listCollections": true, "listDatabases": true,
	"listIndexes": true, "ping": true, "refreshSessions": true, "renameCollection": true,
	"revokePrivilegesFromRole": true, "revokeRolesFromRole": true, "revokeRolesFromUser": true,
	"saslContinue": true, "saslStart": true, "update": true, "updateRole": true,
	"updateUser": true,
}

// unstableStages are the stages that aren't in the Stable API.
var unstableStages = map[string]bool{
	"$currentOp": true, "$indexStats": true, "$listCatalog": true, "$listLocalSessions": true,
	"$listSearchIndexes": true, "$listSessions": true, "$planCacheStats": true, "$search": true, "$searchMeta": true,
	"$vectorSearch": true,
}

// unstableArguments are the arguments of stable commands that aren't in the Stable API.
var unstableArguments = map[string][]string{
	"aggregate": {"isMapReduceCommand", "explain", "runtimeConstants", "collectionUUID"},
	"find": {"min", "max", "returnKey", "noCursorTimeout", "showRecordId", "tailable", "oplogReplay", "awaitData",
		"readOnce", "allowSpeculativeMajorityRead", "$_requestResumeToken", "$_resumeAfter"},
}

// String returns the parameters as MongoDB's messages show them.
func (a apiParams) String() string {
	var parts []string
	if a.version != "" {
		parts = append(parts, `apiVersion: "`+a.version+`"`)
	}
	for _, f := range []struct {
		name string
		v    apiFlag
	}{{"apiStrict", a.strict}, {"apiDeprecationErrors", a.deprecations}} {
		if f.v != apiAbsent {
			parts = append(parts, f.name+": "+strconv.FormatBool(f.v == apiTrue))
		}
	}
	if parts == nil {
		return "{}"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// append writes the parameters to the record of a cursor; nothing if there are none.
func (a apiParams) append(dst []byte) []byte {
	if a == (apiParams{}) {
		return dst
	}
	dst = bson.AppendString(dst, "apiVersion", a.version)
	dst = bson.AppendInt32(dst, "apiStrict", int32(a.strict))
	return bson.AppendInt32(dst, "apiDeprecationErrors", int32(a.deprecations))
}

// apiIn reads what append wrote.
func apiIn(record value.Value) apiParams {
	return apiParams{version: record.Get("apiVersion").Str(), strict: apiFlag(record.Get("apiStrict").Int()),
		deprecations: apiFlag(record.Get("apiDeprecationErrors").Int())}
}

// readAPI reads a parameter of the Stable API.
func (r *request) readAPI(key []byte, v value.Value) error {
	const of = "APIParametersFromClient"
	if string(key) == "apiVersion" {
		if v.Kind() != value.String {
			return args.Want(false, of, key, v, "type 'string'")
		}
		if r.api.version = stableVersion; string(v.Bytes()) != stableVersion {
			r.api.version = v.Str()
		}
		return checkVersion(r.api.version)
	}
	if v.Kind() != value.Bool {
		return args.Want(false, of, key, v, "type 'bool'")
	}
	f := apiFalse
	if v.Bool() {
		f = apiTrue
	}
	if string(key) == "apiStrict" {
		r.api.strict = f
	} else {
		r.api.deprecations = f
	}
	return nil
}

func checkVersion(v string) error {
	switch v {
	case stableVersion:
		return nil
	case "2":
		return merr.New(merr.APIVersionError, "Cannot accept API version 2")
	}
	return merr.New(merr.APIVersionError, "API version must be \"1\"")
}

// sameAPI refuses a command that has other parameters than the one that it continues.
func (r *request) sameAPI(first apiParams, of string) error {
	if r.api == first {
		return nil
	}
	return merr.New(merr.APIMismatchError, "API parameter mismatch: %s used params %s, the %s used %s", r.name, r.api,
		of, first)
}

// checkAPI refuses a known command that its own parameters don't allow.
func (r *request) checkAPI() error {
	switch {
	case r.api.version == "":
		return merr.New(4886600, "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion")
	case r.api.strict != apiTrue:
		return nil
	}
	if !stableCommands[r.name] {
		return merr.New(merr.APIStrictError, "Provided apiStrict:true, but the command %s is not in API Version 1. "+
			"Information on supported commands and migrations in API Version 1 can be found at "+
			"https://dochub.mongodb.org/core/manual-versioned-api", r.name)
	}
	for _, name := range unstableArguments[r.name] {
		if r.body.Get(name).IsDefined() {
			return merr.New(merr.APIStrictError, "BSON field '%s.%s' is not allowed with apiStrict:true.", r.name, name)
		}
	}
	if err := r.stableMetas(); err != nil {
		return err
	}
	switch r.name {
	case "aggregate", "create", "collMod":
		return stablePipeline(r.body.Get("pipeline"))
	case "createIndexes":
		return stableIndexes(r.body.Get("indexes"))
	case "explain":
		return stablePipeline(r.arg.Get("pipeline"))
	}
	return nil
}

// stablePipeline refuses stages that aren't in the Stable API, also in pipelines of stages.
func stablePipeline(p value.Value) error {
	if p.Kind() != value.Array {
		return nil // which is refused for that
	}
	for stages := p.Iter(); stages.Next(); {
		it := stages.Value().Iter()
		if stages.Value().Kind() != value.Object || !it.Next() {
			return nil
		}
		name, arg := string(it.Key()), it.Value()
		var err error
		switch {
		case unstableStages[name]:
			return merr.New(merr.APIStrictError, "%s is not allowed with 'apiStrict: true' in API Version 1", name)
		case name == "$collStats" && moreThanCount(arg):
			return merr.New(merr.APIStrictError, "only the 'count' option to $collStats is supported in API Version 1")
		case name == "$lookup" || name == "$unionWith":
			err = stablePipeline(arg.Get("pipeline"))
		case name == "$facet":
			for f := arg.Iter(); arg.Kind() == value.Object && f.Next() && err == nil; {
				err = stablePipeline(f.Value())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moreThanCount reports whether the argument of $collStats has an option that isn't in the Stable API.
func moreThanCount(arg value.Value) bool {
	return arg.Get("latencyStats").IsDefined() || arg.Get("queryExecStats").IsDefined() ||
		arg.Get("storageStats").IsDefined()
}

// unstableMeta are the names of $meta that aren't in the Stable API.
var unstableMeta = map[string]bool{"textScore": true, "searchScore": true, "searchScoreDetails": true,
	"searchHighlights": true, "searchSequenceToken": true, "indexKey": true}

// stableMetas refuses names of $meta that aren't in the Stable API in all arguments that may have expressions.
func (r *request) stableMetas() error {
	body := r.body
	if r.name == "explain" {
		body = r.arg
	}
	for _, name := range []string{"projection", "sort", "pipeline", "fields", "update", "updates"} {
		if err := stableMeta(body.Get(name), 0); err != nil {
			return err
		}
	}
	for _, s := range r.seqs { // a copy, from which documents can be taken
		for string(s.Name) == "updates" && len(s.Docs) > 0 {
			d, ok := s.Next()
			if !ok {
				break
			}
			if err := stableMeta(value.ObjectOf(d), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// stableMeta refuses a name of $meta that isn't in the Stable API, wherever it is in a value. A $literal has data.
func stableMeta(v value.Value, depth int) error {
	if v.Kind() != value.Object && v.Kind() != value.Array || depth > maxDepth {
		return nil
	}
	for it := v.Iter(); it.Next(); {
		name, x := string(it.Key()), it.Value()
		switch {
		case v.Kind() == value.Object && name == "$literal":
			continue
		case v.Kind() == value.Object && name == "$meta" && x.Kind() == value.String && unstableMeta[x.Str()]:
			return merr.New(merr.APIStrictError, "Provided apiStrict is true with an unstable meta field \"%s\"",
				x.Str())
		}
		if err := stableMeta(x, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// unstableIndex reports whether an index isn't in the Stable API: one of texts, or a sparse one.
func unstableIndex(spec value.Value) bool {
	key := spec.Get("key")
	unstable := args.Flag(spec, "sparse", false)
	for k := key.Iter(); key.Kind() == value.Object && k.Next(); {
		unstable = unstable || k.Value().Str() == "text"
	}
	return unstable
}

// stableIndexes refuses indexes that aren't in the Stable API.
func stableIndexes(list value.Value) error {
	for it := list.Iter(); list.Kind() == value.Array && it.Next(); {
		spec := it.Value()
		if spec.Kind() != value.Object {
			return nil
		}
		if unstableIndex(spec) {
			return merr.New(merr.APIStrictError, "The index with name %s is not allowed in API version 1.",
				spec.Get("name").Str())
		}
	}
	return nil
}
