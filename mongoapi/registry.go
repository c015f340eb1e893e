package mongoapi

// command is one entry of the registry. fn appends the fields of the reply's document, without ok.
type command struct {
	fn    func(r *request, dst []byte) ([]byte, error)
	open  bool // allowed before authentication
	txn   bool // allowed to say that it belongs to a transaction
	retry bool // a retryable write: its reply is remembered by session and transaction number
}

var commands map[string]command

func init() {
	commands = map[string]command{
		// Connecting.
		"buildInfo":    {fn: buildInfo, open: true},
		"buildinfo":    {fn: buildInfo, open: true},
		"hello":        {fn: hello, open: true},
		"isMaster":     {fn: hello, open: true},
		"ismaster":     {fn: hello, open: true},
		"logout":       {fn: logout, open: true},
		"ping":         {fn: nothing, open: true},
		"saslContinue": {fn: saslContinue, open: true},
		"saslStart":    {fn: saslStart, open: true},
		"whatsmyuri":   {fn: whatsMyURI, open: true},

		// Reading.
		"aggregate":   {fn: aggregate},
		"count":       {fn: count},
		"distinct":    {fn: distinct},
		"explain":     {fn: explain},
		"find":        {fn: find},
		"getMore":     {fn: getMore},
		"killCursors": {fn: killCursors},

		// Writing.
		"delete":        {fn: deleteDocs, retry: true},
		"findAndModify": {fn: findAndModify, retry: true},
		"findandmodify": {fn: findAndModify, retry: true},
		"insert":        {fn: insert, retry: true},
		"update":        {fn: updateDocs, retry: true},

		// Collections, databases and indexes.
		"create":           {fn: create},
		"createIndexes":    {fn: createIndexes},
		"customAction":     {fn: customAction},
		"drop":             {fn: drop},
		"dropDatabase":     {fn: dropDatabase},
		"dropIndexes":      {fn: dropIndexes},
		"deleteIndexes":    {fn: dropIndexes},
		"enableSharding":   {fn: nothing},
		"listCollections":  {fn: listCollections},
		"listDatabases":    {fn: listDatabases},
		"listIndexes":      {fn: listIndexes},
		"renameCollection": {fn: renameCollection},
		"shardCollection":  {fn: shardCollection},

		// Sessions. A transaction can't begin, so there is none to end.
		"abortTransaction":  {fn: noTransaction, txn: true},
		"commitTransaction": {fn: noTransaction, txn: true},
		"endSessions":       {fn: endSessions},
		"killAllSessions":   {fn: nothing},
		"killSessions":      {fn: endSessions},
		"refreshSessions":   {fn: nothing},
		"startSession":      {fn: startSession},

		// Looking at the server.
		"collStats":                {fn: collStatsCommand},
		"connectionStatus":         {fn: connectionStatus},
		"currentOp":                {fn: currentOp},
		"dataSize":                 {fn: dataSize},
		"dbStats":                  {fn: dbStats},
		"dbstats":                  {fn: dbStats},
		"getCmdLineOpts":           {fn: getCmdLineOpts},
		"getLastRequestStatistics": {fn: getLastRequestStatistics},
		"getLog":                   {fn: getLog},
		"getParameter":             {fn: getParameter},
		"hostInfo":                 {fn: hostInfo},
		"listCommands":             {fn: listCommands},
		"replSetGetStatus":         {fn: replSetGetStatus},
		"serverStatus":             {fn: serverStatus},
	}
	for name := range commands {
		if unsupported[name] {
			panic("mongoapi: " + name + " is both supported and not")
		}
	}
}

// unsupported lists commands that MongoDB has and we don't. Any other name is unknown.
var unsupported = map[string]bool{
	"applyOps": true, "authenticate": true, "bulkWrite": true, "cloneCollectionAsCapped": true, "collMod": true, "compact": true,
	"configureFailPoint": true, "connPoolStats": true, "convertToCapped": true, "createRole": true, "createUser": true,
	"dbHash": true, "dropAllUsersFromDatabase": true, "dropUser": true, "filemd5": true, "fsync": true, "getLastError": true,
	"getShardMap": true, "getnonce": true, "grantRolesToUser": true, "killAllSessionsByPattern": true, "killOp": true,
	"mapReduce": true, "planCacheClear": true, "profile": true, "reIndex": true, "replSetInitiate": true, "rolesInfo": true,
	"setFeatureCompatibilityVersion": true, "setParameter": true, "shutdown": true, "top": true, "updateUser": true,
	"usersInfo": true, "validate": true,
}

// nothing answers a command that needs no work.
func nothing(_ *request, dst []byte) ([]byte, error) { return dst, nil }
