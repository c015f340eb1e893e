package mongoapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/mongoapi/args"
)

// command is one entry of the registry. fn appends the fields of the reply, without ok.
type command struct {
	name  string // by which it was called
	index int    // in counters.commands
	fn    func(r *request, dst []byte) ([]byte, error)
	open  bool // allowed before authentication
	txn   bool // may be part of a transaction
	ends  bool // ends a transaction
	snap  bool // may read a snapshot outside of a transaction
	retry bool // a retryable write: its reply is kept by session and transaction number
	test  bool // only with Options.TestCommands; unknown otherwise
	users bool // about users: it may contain a password
	free  bool // not limited by the gate: it needs no work, or ends another command

	args   args.Set // arguments besides the generic ones
	strict bool     // other arguments are refused
}

var commands map[string]command

func init() {
	commands = map[string]command{
		// Connecting.
		"authenticate": {fn: authenticate, open: true, args: args.Set{"mechanism": args.String}},
		"buildInfo":    {fn: buildInfo, open: true},
		"buildinfo":    {fn: buildInfo, open: true},
		"hello":        {fn: hello, open: true},
		"isMaster":     {fn: hello, open: true},
		"ismaster":     {fn: hello, open: true},
		"logout":       {fn: logout, open: true},
		"ping":         {fn: nothing, open: true},
		"saslContinue": {fn: saslContinue, open: true},
		"saslStart":    {fn: saslStart, open: true, args: args.Set{"mechanism": args.String, "options": args.Object}},
		"whatsmyuri":   {fn: whatsMyURI, open: true},

		// Reading.
		"aggregate":   {fn: aggregate, txn: true, snap: true, args: aggregateArguments, strict: true},
		"count":       {fn: count, args: countArguments, strict: true},
		"distinct":    {fn: distinct, txn: true, snap: true, args: distinctArguments, strict: true},
		"explain":     {fn: explain, args: args.Set{"verbosity": args.String}, strict: true},
		"find":        {fn: find, txn: true, snap: true, args: findArguments, strict: true},
		"mapReduce":   {fn: mapReduce, args: mapReduceArguments, strict: true},
		"mapreduce":   {fn: mapReduce, args: mapReduceArguments, strict: true},
		"getMore":     {fn: getMore, txn: true, snap: true, args: getMoreArguments, strict: true},
		"killOp":      {fn: killOp, free: true, args: args.Set{"op": args.Any}},
		"killCursors": {fn: killCursors, txn: true, args: args.Set{"cursors": args.Array}, strict: true, free: true},

		// Writing.
		"bulkWrite":     {fn: bulkWrite, txn: true, retry: true, args: bulkWriteArguments, strict: true},
		"delete":        {fn: deleteDocs, txn: true, retry: true, args: deleteArguments, strict: true},
		"findAndModify": {fn: findAndModify, txn: true, retry: true, args: findAndModifyArguments, strict: true},
		"findandmodify": {fn: findAndModify, txn: true, retry: true, args: findAndModifyArguments, strict: true},
		"insert":        {fn: insert, txn: true, retry: true, args: insertArguments, strict: true},
		"update":        {fn: updateDocs, txn: true, retry: true, args: updateArguments, strict: true},

		// Collections, databases and indexes.
		"collMod": {fn: collMod, args: collModArguments, strict: true},
		"cloneCollectionAsCapped": {fn: cloneCollectionAsCapped,
			args: args.Set{"toCollection": args.String, "size": args.Number}},
		"convertToCapped":     {fn: convertToCapped, args: args.Set{"size": args.Number}},
		"create":              {fn: create, txn: true, args: createArguments, strict: true},
		"createIndexes":       {fn: createIndexes, txn: true, args: createIndexesArguments, strict: true},
		"customAction":        {fn: customAction},
		"drop":                {fn: drop, strict: true},
		"dropDatabase":        {fn: dropDatabase, strict: true},
		"dropIndexes":         {fn: dropIndexes, args: dropIndexesArguments, strict: true},
		"deleteIndexes":       {fn: dropIndexes, args: dropIndexesArguments, strict: true},
		"enableSharding":      {fn: nothing},
		"listCollections":     {fn: listCollections, args: listCollectionsArgs, strict: true},
		"listDatabases":       {fn: listDatabases, args: listDatabasesArgs},
		"listIndexes":         {fn: listIndexes, args: listIndexesArguments, strict: true},
		"createSearchIndexes": {fn: createSearchIndexes, args: createSearchIndexesArguments, strict: true},
		"dropSearchIndex":     {fn: dropSearchIndex, args: searchIndexArguments, strict: true},
		"listSearchIndexes":   {fn: listSearchIndexes, args: searchIndexArguments, strict: true},
		"updateSearchIndex":   {fn: updateSearchIndex, args: updateSearchIndexArguments, strict: true},

		"renameCollection": {fn: renameCollection, args: renameCollectionArgs, strict: true},
		"shardCollection":  {fn: shardCollection, args: shardCollectionArgs},

		// Sessions.
		"abortTransaction":         {fn: abortTransaction, txn: true, ends: true},
		"commitTransaction":        {fn: commitTransaction, txn: true, ends: true},
		"endSessions":              {fn: endSessions, free: true},
		"killAllSessions":          {fn: killAllSessions, free: true},
		"killAllSessionsByPattern": {fn: killAllSessionsByPattern, free: true},
		"killSessions":             {fn: endSessions, free: true},
		"refreshSessions":          {fn: refreshSessions, free: true},
		"startSession":             {fn: startSession},

		// Users and roles.
		"createRole":               {users: true, fn: createRole, args: createRoleArguments, strict: true},
		"createUser":               {users: true, fn: createUser, args: createUserArguments, strict: true},
		"dropAllRolesFromDatabase": {users: true, fn: dropAllRoles, strict: true},
		"dropAllUsersFromDatabase": {users: true, fn: dropAllUsers, strict: true},
		"dropRole":                 {users: true, fn: dropRole, strict: true},
		"dropUser":                 {users: true, fn: dropUser, strict: true},
		"grantPrivilegesToRole":    {users: true, fn: changePrivileges, args: privilegesArguments, strict: true},
		"grantRolesToRole":         {users: true, fn: changeContained, args: rolesArguments, strict: true},
		"grantRolesToUser":         {users: true, fn: changeRoles, args: rolesArguments, strict: true},
		"revokePrivilegesFromRole": {users: true, fn: changePrivileges, args: privilegesArguments, strict: true},
		"revokeRolesFromRole":      {users: true, fn: changeContained, args: rolesArguments, strict: true},
		"revokeRolesFromUser":      {users: true, fn: changeRoles, args: rolesArguments, strict: true},
		"rolesInfo":                {users: true, fn: rolesInfo, args: rolesInfoArguments, strict: true},
		"updateRole":               {users: true, fn: updateRole, args: createRoleArguments, strict: true},
		"updateUser":               {users: true, fn: updateUser, args: createUserArguments, strict: true},
		"usersInfo":                {users: true, fn: usersInfo, args: usersInfoArguments, strict: true},

		// Diagnostics.
		"compact":                        {fn: compact, args: compactArguments},
		"dbHash":                         {fn: dbHash, args: args.Set{"collections": args.Array}},
		"dbhash":                         {fn: dbHash, args: args.Set{"collections": args.Array}},
		"filemd5":                        {fn: fileMD5},
		"reIndex":                        {fn: reIndex},
		"top":                            {fn: top},
		"validate":                       {fn: validateCollection, args: validateArguments},
		"configureFailPoint":             {fn: configureFailPoint, test: true, free: true},
		"collStats":                      {fn: collStatsCommand, args: args.Set{"scale": args.Number}},
		"connPoolStats":                  {fn: connPoolStats},
		"fsync":                          {fn: fsync, args: args.Set{"lock": args.SafeBool, "async": args.SafeBool}},
		"fsyncUnlock":                    {fn: fsyncUnlock},
		"planCacheClear":                 {fn: planCacheClear},
		"planCacheClearFilters":          {fn: planCacheClear},
		"planCacheListFilters":           {fn: planCacheListFilters},
		"profile":                        {fn: setProfile, args: profileArguments, strict: true},
		"setFeatureCompatibilityVersion": {fn: setFeatureVersion, args: args.Set{"confirm": args.SafeBool}},
		"setParameter":                   {fn: setParameter},
		"connectionStatus":               {fn: connectionStatus, args: args.Set{"showPrivileges": args.SafeBool}},
		"currentOp":                      {fn: currentOp, free: true},
		"collstats":                      {fn: collStatsCommand, args: args.Set{"scale": args.Number}},
		"dataSize":                       {fn: dataSize},
		"datasize":                       {fn: dataSize},
		"dbStats":                        {fn: dbStats, args: dbStatsArguments},
		"dbstats":                        {fn: dbStats, args: dbStatsArguments},
		"getCmdLineOpts":                 {fn: getCmdLineOpts},
		"getLastRequestStatistics":       {fn: getLastRequestStatistics, free: true},
		"getLog":                         {fn: getLog},
		"getParameter":                   {fn: getParameter},
		"getClusterParameter":            {fn: getClusterParameter, strict: true},
		"setClusterParameter":            {fn: setClusterParameter, strict: true},
		"getDefaultRWConcern":            {fn: getDefaultRWConcern, args: args.Set{"inMemory": args.SafeBool}},
		"setDefaultRWConcern":            {fn: setDefaultRWConcern, args: defaultConcernArguments, strict: true},
		"getDiagnosticData":              {fn: getDiagnosticData},
		"hostInfo":                       {fn: hostInfo},
		"listCommands":                   {fn: listCommands},
		"features":                       {fn: features, args: args.Set{"oidReset": args.SafeBool}},
		"replSetGetConfig":               {fn: replSetGetConfig},
		"replSetGetRBID":                 {fn: replSetGetRBID},
		"replSetGetStatus":               {fn: replSetGetStatus},
		"replSetInitiate":                {fn: replSetInitiate},
		"replSetReconfig":                {fn: replSetReconfig},
		"serverStatus":                   {fn: serverStatus},
		"shardingState":                  {fn: shardingState},
		"shutdown":                       {fn: shutdown, free: true, args: shutdownArguments},
		"getLastError":                   {fn: gone(5739000, "getLastError command is not supported")},
		"getlasterror":                   {fn: gone(5739000, "getLastError command is not supported")},
	}
	spelled := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		if unsupported[name] {
			panic("mongoapi: " + name + " is both supported and not")
		}
		any := strings.ToLower(name) // isMaster comes before ismaster, which is counted as the same
		if spelled[any] == 0 {
			commandNames = append(commandNames, name)
			spelled[any] = len(commandNames)
		}
		def := commands[name]
		def.name, def.index = name, spelled[any]
		commands[name] = def
	}
}

// commandNames are the names of the commands, sorted, each in one spelling.
var commandNames []string

// unsupported lists commands of MongoDB that aren't supported. All other names are unknown.
var unsupported = map[string]bool{"analyzeShardKey": true, "appendOplogNote": true, "applyOps": true,
	"compactStructuredEncryptionData": true, "configureQueryAnalyzer": true, "getShardMap": true,
	"invalidateUserCache": true, "lockInfo": true, "logRotate": true, "planCacheSetFilter": true, "replSetFreeze": true,
	"replSetMaintenance": true, "replSetResizeOplog": true, "replSetStepDown": true, "replSetSyncFrom": true,
	"rotateCertificates": true, "setUserWriteBlockMode": true, "validateDBMetadata": true}

// nothing replies to a command that needs no work.
func nothing(_ *request, dst []byte) ([]byte, error) { return dst, nil }
