package mongoapi

import (
	"bytes"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// argKind is the set of types that a command's argument may have. The kinds are those of the server's own command
// definitions, which differ in strictness: a strict boolean refuses 1, a safe boolean accepts any number.
type argKind uint8

const (
	anyArg       argKind = iota // the code that uses it checks it
	strictBool                  // a boolean
	safeBool                    // a boolean or a number
	optionalBool                // as safeBool, with another error text; null is an error
	numberArg                   // any number
	stringArg
	objectArg
	arrayArg
	docsArg // an array of objects, or a document sequence
	hintArg // the name or the key of an index
)

// args are the arguments of a command by name.
type args map[string]argKind

// with returns the union of a and others.
func (a args) with(others ...args) args {
	out := args{}
	for _, m := range append(others, a) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// check checks one argument of a command. where is "command" or "command.array". Null counts as absent, unless the kind
// says otherwise.
func (k argKind) check(where string, name []byte, v value.Value) error {
	if v.Kind() == value.Null && k != optionalBool {
		return nil
	}
	bool1 := v.Kind() == value.Bool
	switch k {
	case strictBool:
		return want(bool1, where, name, v, "type 'bool'")
	case safeBool:
		return want(bool1 || v.IsNumber(), where, name, v, "types '[bool, long, int, decimal, double]'")
	case optionalBool:
		if !bool1 && !v.IsNumber() {
			return merr.New(merr.TypeMismatch, "Field '%s' should be a boolean value, but found: %s", name,
				expr.TypeName(v))
		}
	case numberArg:
		return want(v.IsNumber(), where, name, v, "types '[long, int, decimal, double]'")
	case stringArg:
		return want(v.Kind() == value.String, where, name, v, "type 'string'")
	case objectArg:
		return want(v.Kind() == value.Object, where, name, v, "type 'object'")
	case arrayArg:
		return want(v.Kind() == value.Array, where, name, v, "type 'array'")
	case docsArg:
		return checkDocs(where, name, v)
	case hintArg:
		if v.Kind() != value.String && v.Kind() != value.Object {
			return merr.New(merr.FailedToParse, "Hint must be a string or an object")
		}
	}
	return nil
}

func want(ok bool, where string, name []byte, v value.Value, types string) error {
	if ok {
		return nil
	}
	return merr.New(merr.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected %s", where, name,
		expr.TypeName(v), types)
}

func checkDocs(where string, name []byte, v value.Value) error {
	if v.Kind() != value.Array {
		return want(false, where, name, v, "type 'array'")
	}
	i := 0
	for it := v.Iter(); it.Next(); i++ {
		if d := it.Value(); d.Kind() != value.Object {
			return merr.New(merr.TypeMismatch, "BSON field '%s.%s.%d' is the wrong type '%s', expected type 'object'",
				where, name, i, expr.TypeName(d))
		}
	}
	return nil
}

func unknownField(where string, name []byte) error {
	return merr.New(merr.UnknownField, "BSON field '%s.%s' is an unknown field.", where, name)
}

func duplicateField(where string, name []byte) error {
	return merr.New(merr.DuplicateField, "BSON field '%s.%s' is a duplicate field", where, name)
}

// fewArgs is the largest number of arguments that nearly all commands have.
const fewArgs = 16

// contains reports whether an argument was seen before.
func contains(seen [][]byte, name []byte) bool {
	for _, s := range seen {
		if bytes.Equal(s, name) {
			return true
		}
	}
	return false
}

// checkAll checks the arguments of an object, such as a statement of an update. Unknown arguments are refused.
func (a args) checkAll(where string, obj value.Value) error {
	var few [fewArgs][]byte
	seen := few[:0]
	for it := obj.Iter(); it.Next(); {
		k, ok := a[string(it.Key())]
		if !ok {
			return unknownField(where, it.Key())
		}
		if contains(seen, it.Key()) {
			return duplicateField(where, it.Key())
		}
		seen = append(seen, it.Key())
		if err := k.check(where, it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return nil
}

// checkSeqs checks the document sequences of a command. Each replaces an argument with documents that the body doesn't
// have.
func (r *request) checkSeqs(def command) error {
	for i := range r.seqs {
		name := r.seqs[i].Name
		switch {
		case def.args[string(name)] != docsArg:
			return unknownField(r.name, name)
		case r.body.Get(string(name)).IsDefined():
			return merr.New(40433, "Duplicate field between body and document sequence %s", name)
		}
		for _, before := range r.seqs[:i] {
			if bytes.Equal(before.Name, name) {
				return merr.New(40431, "Duplicate document sequence: %s", name)
			}
		}
	}
	return nil
}

// given returns an argument of an object. Null counts as absent.
func given(obj value.Value, name string) value.Value {
	v := obj.Get(name)
	if v.Kind() == value.Null {
		return value.Undef()
	}
	return v
}

// flag returns a boolean argument that was already checked, or otherwise if it is absent.
func flag(obj value.Value, name string, otherwise bool) bool {
	if v := given(obj, name); v.IsDefined() {
		return expr.Truthy(v)
	}
	return otherwise
}

// The arguments of the commands, as in the server's definitions, without those that only members of a cluster send to
// each other.
var (
	findArguments = args{
		"filter": objectArg, "projection": objectArg, "sort": objectArg, "hint": hintArg, "collation": objectArg,
		"skip": numberArg, "limit": numberArg, "batchSize": numberArg, "ntoreturn": numberArg,
		"singleBatch": optionalBool, "allowDiskUse": optionalBool, "min": objectArg, "max": objectArg,
		"returnKey": optionalBool, "showRecordId": optionalBool, "tailable": optionalBool,
		"oplogReplay": optionalBool, "noCursorTimeout": optionalBool, "awaitData": optionalBool,
		"allowPartialResults": optionalBool, "let": objectArg, "options": objectArg, "term": numberArg,
		"readOnce": optionalBool, "allowSpeculativeMajorityRead": optionalBool,
		"$_requestResumeToken": optionalBool, "$_resumeAfter": objectArg, "runtimeConstants": objectArg,
		"collectionUUID": anyArg, "mirrored": optionalBool,
	}

	aggregateArguments = args{
		"pipeline": arrayArg, "explain": strictBool, "allowDiskUse": optionalBool, "cursor": objectArg,
		"bypassDocumentValidation": safeBool, "collation": objectArg, "hint": hintArg, "let": objectArg,
		"runtimeConstants": objectArg, "collectionUUID": anyArg, "isMapReduceCommand": optionalBool,
	}

	countArguments = args{
		"query": objectArg, "limit": numberArg, "skip": numberArg, "hint": hintArg, "collation": objectArg,
		"fields": anyArg, "collectionUUID": anyArg,
	}

	distinctArguments = args{
		"key": stringArg, "query": objectArg, "collation": objectArg, "hint": hintArg, "collectionUUID": anyArg,
	}

	mapReduceArguments = args{
		"map": anyArg, "reduce": anyArg, "finalize": anyArg, "out": anyArg, "query": objectArg, "sort": objectArg,
		"limit": numberArg, "scope": objectArg, "jsMode": safeBool, "verbose": safeBool, "collation": objectArg,
		"bypassDocumentValidation": safeBool,
	}

	getMoreArguments = args{
		"collection": stringArg, "batchSize": numberArg, "term": numberArg, "lastKnownCommittedOpTime": anyArg,
	}

	writeArguments = args{
		"bypassDocumentValidation": safeBool, "ordered": strictBool, "stmtIds": arrayArg, "collectionUUID": anyArg,
		"bypassEmptyTsReplacement": optionalBool,
	}
	insertArguments = writeArguments.with(args{"documents": docsArg})
	updateArguments = writeArguments.with(args{"updates": docsArg, "let": objectArg, "runtimeConstants": objectArg})
	deleteArguments = writeArguments.with(args{"deletes": docsArg, "let": objectArg, "runtimeConstants": objectArg})

	updateStatement = args{
		"q": objectArg, "u": anyArg, "c": objectArg, "arrayFilters": docsArg, "hint": hintArg, "multi": strictBool,
		"upsert": strictBool, "upsertSupplied": optionalBool, "collation": objectArg, "sampleId": anyArg,
	}
	sortedUpdateStatement = updateStatement.with(args{"sort": objectArg})
	deleteStatement       = args{
		"q": objectArg, "limit": anyArg, "hint": hintArg, "collation": objectArg, "sampleId": anyArg,
	}

	findAndModifyArguments = args{
		"query": objectArg, "update": anyArg, "remove": safeBool, "new": safeBool, "upsert": safeBool,
		"fields": objectArg, "sort": objectArg, "hint": hintArg, "collation": objectArg, "arrayFilters": docsArg,
		"let": objectArg, "bypassDocumentValidation": safeBool, "runtimeConstants": objectArg,
		"collectionUUID": anyArg, "sampleId": anyArg,
	}

	createArguments = args{
		"capped": safeBool, "autoIndexId": safeBool, "idIndex": objectArg, "size": numberArg, "max": numberArg,
		"storageEngine": objectArg, "validator": objectArg, "validationLevel": stringArg,
		"validationAction": stringArg, "indexOptionDefaults": objectArg, "viewOn": stringArg, "pipeline": arrayArg,
		"collation": objectArg, "recordPreImages": safeBool, "changeStreamPreAndPostImages": objectArg,
		"timeseries": objectArg, "clusteredIndex": anyArg, "expireAfterSeconds": anyArg,
		"encryptedFields": objectArg, "temp": safeBool, "flags": numberArg,
	}

	collModArguments = args{
		"index": objectArg, "validator": objectArg, "validationLevel": stringArg, "validationAction": stringArg,
		"viewOn": stringArg, "pipeline": arrayArg,
	}

	createIndexesArguments = args{"indexes": docsArg, "ignoreUnknownIndexOptions": safeBool, "commitQuorum": anyArg}
	dropIndexesArguments   = args{"index": anyArg}
	listIndexesArguments   = args{
		"cursor": objectArg, "includeBuildUUIDs": optionalBool, "includeIndexBuildInfo": optionalBool,
	}
	listCollectionsArgs = args{
		"filter": objectArg, "nameOnly": optionalBool, "authorizedCollections": optionalBool, "cursor": objectArg,
	}
	listDatabasesArgs   = args{"filter": objectArg, "nameOnly": safeBool, "authorizedDatabases": safeBool}
	shardCollectionArgs = args{
		"key": objectArg, "unique": safeBool, "numInitialChunks": numberArg, "collation": objectArg,
	}
)

// genericArgs are the arguments that every command may have. readGeneric checks those that it reads.
var genericArgs = args{
	"comment": anyArg, "$readPreference": anyArg, "$queryOptions": anyArg,
	"$client": anyArg, "$audit": anyArg,
	"clientOperationKey": anyArg, "stmtId": numberArg, "txnRetryCounter": anyArg,
	"allowImplicitCollectionCreation": anyArg, "$configServerState": anyArg, "$oplogQueryData": anyArg,
	"$replData": anyArg, "databaseVersion": anyArg, "shardVersion": anyArg, "tracking_info": anyArg,
	"coordinator": anyArg, "maxTimeMSOpOnly": anyArg, "$configTime": anyArg, "$topologyTime": anyArg,
	"mayBypassWriteBlocking": anyArg, "$tenant": anyArg, "expectPrefix": anyArg, "serialization_context": anyArg,
}
