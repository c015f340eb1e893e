package mongoapi

import (
	"bytes"

	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// checkSeqs checks the document sequences of a command. Each replaces an argument with documents that the body doesn't
// have.
func (r *request) checkSeqs(def command) error {
	for i := range r.seqs {
		name := r.seqs[i].Name
		switch {
		case def.args[string(name)] != args.Documents:
			return args.Unknown(r.name, name)
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

// The arguments of the commands, as in the server's definitions, without those that only members of a cluster send to
// each other.
var (
	findArguments = args.Set{
		"filter": args.Object, "projection": args.Object, "sort": args.Object, "hint": args.Hint,
		"collation": args.Object, "skip": args.Number, "limit": args.Number, "batchSize": args.Number,
		"ntoreturn": args.Number, "singleBatch": args.OptionalBool, "allowDiskUse": args.OptionalBool,
		"min": args.Object, "max": args.Object, "returnKey": args.OptionalBool, "showRecordId": args.OptionalBool,
		"tailable": args.OptionalBool, "oplogReplay": args.OptionalBool, "noCursorTimeout": args.OptionalBool,
		"awaitData": args.OptionalBool, "allowPartialResults": args.OptionalBool, "let": args.Object,
		"options": args.Object, "term": args.Number, "readOnce": args.OptionalBool,
		"allowSpeculativeMajorityRead": args.OptionalBool, "$_requestResumeToken": args.OptionalBool,
		"$_resumeAfter": args.Object, "runtimeConstants": args.Object, "collectionUUID": args.Any,
		"mirrored": args.OptionalBool,
	}

	aggregateArguments = args.Set{
		"pipeline": args.Array, "explain": args.StrictBool, "allowDiskUse": args.OptionalBool, "cursor": args.Object,
		"bypassDocumentValidation": args.SafeBool, "collation": args.Object, "hint": args.Hint, "let": args.Object,
		"runtimeConstants": args.Object, "collectionUUID": args.Any, "isMapReduceCommand": args.OptionalBool,
	}

	countArguments = args.Set{
		"query": args.Object, "limit": args.Number, "skip": args.Number, "hint": args.Hint, "collation": args.Object,
		"fields": args.Any, "collectionUUID": args.Any,
	}

	distinctArguments = args.Set{
		"key": args.String, "query": args.Object, "collation": args.Object, "hint": args.Hint,
		"collectionUUID": args.Any,
	}

	mapReduceArguments = args.Set{
		"map": args.Any, "reduce": args.Any, "finalize": args.Any, "out": args.Any, "query": args.Object,
		"sort": args.Object, "limit": args.Number, "scope": args.Object, "jsMode": args.SafeBool,
		"verbose": args.SafeBool, "collation": args.Object, "bypassDocumentValidation": args.SafeBool,
	}

	getMoreArguments = args.Set{
		"collection": args.String, "batchSize": args.Number, "term": args.Number,
		"lastKnownCommittedOpTime": args.Any,
	}

	writeArguments = args.Set{
		"bypassDocumentValidation": args.SafeBool, "ordered": args.StrictBool, "stmtIds": args.Array,
		"collectionUUID": args.Any, "bypassEmptyTsReplacement": args.OptionalBool,
	}
	insertArguments = writeArguments.With(args.Set{"documents": args.Documents})
	updateArguments = writeArguments.With(args.Set{
		"updates": args.Documents, "let": args.Object, "runtimeConstants": args.Object,
	})
	deleteArguments = writeArguments.With(args.Set{
		"deletes": args.Documents, "let": args.Object, "runtimeConstants": args.Object,
	})

	updateStatement = args.Set{
		"q": args.Object, "u": args.Any, "c": args.Object, "arrayFilters": args.Documents, "hint": args.Hint,
		"multi": args.StrictBool, "upsert": args.StrictBool, "upsertSupplied": args.OptionalBool,
		"collation": args.Object, "sampleId": args.Any,
	}
	sortedUpdateStatement = updateStatement.With(args.Set{"sort": args.Object})
	deleteStatement       = args.Set{
		"q": args.Object, "limit": args.Any, "hint": args.Hint, "collation": args.Object, "sampleId": args.Any,
	}

	findAndModifyArguments = args.Set{
		"query": args.Object, "update": args.Any, "remove": args.SafeBool, "new": args.SafeBool,
		"upsert": args.SafeBool, "fields": args.Object, "sort": args.Object, "hint": args.Hint,
		"collation": args.Object, "arrayFilters": args.Documents, "let": args.Object,
		"bypassDocumentValidation": args.SafeBool, "runtimeConstants": args.Object, "collectionUUID": args.Any,
		"sampleId": args.Any,
	}

	createArguments = args.Set{
		"capped": args.SafeBool, "autoIndexId": args.SafeBool, "idIndex": args.Object, "size": args.Number,
		"max": args.Number, "storageEngine": args.Object, "validator": args.Object, "validationLevel": args.String,
		"validationAction": args.String, "indexOptionDefaults": args.Object, "viewOn": args.String,
		"pipeline": args.Array, "collation": args.Object, "recordPreImages": args.SafeBool,
		"changeStreamPreAndPostImages": args.Object, "timeseries": args.Object, "clusteredIndex": args.Any,
		"expireAfterSeconds": args.Any, "encryptedFields": args.Object, "temp": args.SafeBool, "flags": args.Number,
	}

	collModArguments = args.Set{
		"index": args.Object, "validator": args.Object, "validationLevel": args.String,
		"validationAction": args.String, "viewOn": args.String, "pipeline": args.Array,
		"changeStreamPreAndPostImages": args.Object, "expireAfterSeconds": args.Any, "timeseries": args.Object,
		"cappedSize": args.Number, "cappedMax": args.Number, "dryRun": args.OptionalBool,
	}

	createIndexesArguments = args.Set{
		"indexes": args.Documents, "ignoreUnknownIndexOptions": args.SafeBool, "commitQuorum": args.Any,
	}
	createSearchIndexesArguments = args.Set{"indexes": args.Documents}
	searchIndexArguments         = args.Set{"name": args.String, "id": args.String}
	updateSearchIndexArguments   = args.Set{"name": args.String, "id": args.String, "definition": args.Object}

	dropIndexesArguments = args.Set{"index": args.Any}
	listIndexesArguments = args.Set{
		"cursor": args.Object, "includeBuildUUIDs": args.OptionalBool, "includeIndexBuildInfo": args.OptionalBool,
	}
	renameCollectionArgs = args.Set{"to": args.String, "dropTarget": args.Any, "stayTemp": args.StrictBool}
	listCollectionsArgs  = args.Set{
		"includePendingDrops": args.SafeBool,
		"filter":              args.Object, "nameOnly": args.OptionalBool, "authorizedCollections": args.OptionalBool,
		"cursor": args.Object,
	}
	compactArguments  = args.Set{"force": args.SafeBool, "freeSpaceTargetMB": args.Number}
	validateArguments = args.Set{"full": args.SafeBool, "metadata": args.SafeBool}
	dbStatsArguments  = args.Set{"scale": args.Number, "freeStorage": args.SafeBool}
	listDatabasesArgs = args.Set{
		"filter": args.Object, "nameOnly": args.SafeBool, "authorizedDatabases": args.SafeBool,
	}
	shardCollectionArgs = args.Set{
		"key": args.Object, "unique": args.SafeBool, "numInitialChunks": args.Number, "collation": args.Object,
	}
)

// genericArgs are the arguments that every command may have. readGeneric checks those that it reads.
var genericArgs = args.Set{
	"comment": args.Any, "$readPreference": args.Any, "$queryOptions": args.Any, "$client": args.Any,
	"$audit": args.Any, "clientOperationKey": args.Any, "stmtId": args.Number, "txnRetryCounter": args.Any,
	"allowImplicitCollectionCreation": args.Any, "$configServerState": args.Any, "$oplogQueryData": args.Any,
	"$replData": args.Any, "databaseVersion": args.Any, "shardVersion": args.Any, "tracking_info": args.Any,
	"coordinator": args.Any, "maxTimeMSOpOnly": args.Any, "$configTime": args.Any, "$topologyTime": args.Any,
	"mayBypassWriteBlocking": args.Any, "$tenant": args.Any, "expectPrefix": args.Any,
	"serialization_context": args.Any,
}
