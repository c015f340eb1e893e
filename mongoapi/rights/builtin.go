package rights

import "slices"

// The actions of the roles that exist in every database, and of those of admin. Their names and contents are those of
// MongoDB 7.0's manual ("Built-In Roles"); actions on what doesn't exist here grant nothing.
var (
	readActions = []string{"changeStream", "collStats", "dbHash", "dbStats", "find", "killCursors", "listCollections",
		"listIndexes", "listSearchIndexes", "planCacheRead"}
	writeActions = []string{"convertToCapped", "createCollection", "createIndex", "createSearchIndexes",
		"dropCollection", "dropIndex", "dropSearchIndex", "insert", "remove", "renameCollectionSameDB", "update",
		"updateSearchIndex"}
	readWriteActions = slices.Concat(readActions, writeActions)
	adminActions     = []string{"bypassDocumentValidation", "collMod", "collStats", "compact", "convertToCapped",
		"createCollection", "createIndex", "createSearchIndexes", "dbStats", "dropCollection", "dropDatabase",
		"dropIndex", "dropSearchIndex", "enableProfiler", "listCollections", "listIndexes", "listSearchIndexes",
		"planCacheIndexFilter", "planCacheRead", "planCacheWrite", "reIndex", "renameCollectionSameDB",
		"storageDetails", "updateSearchIndex", "validate"}
	userActions = []string{"changeCustomData", "changePassword", "createRole", "createUser", "dropRole", "dropUser",
		"grantRole", "revokeRole", "setAuthenticationRestriction", "viewRole", "viewUser"}
	profileActions = slices.Concat(readActions, []string{"convertToCapped", "createCollection", "dropCollection"})

	monitorActions = []string{"connPoolStats", "getCmdLineOpts", "getDefaultRWConcern", "getLog", "getParameter",
		"getShardMap", "hostInfo", "inprog", "listDatabases", "listSessions", "listShards", "netstat",
		"operationMetrics", "replSetGetConfig", "replSetGetStatus", "serverStatus", "shardingState", "top",
		"useUUID"}
	monitorDBActions = []string{"collStats", "dbStats", "getDatabaseVersion", "getShardVersion", "indexStats"}
	hostActions      = []string{"applicationMessage", "connPoolSync", "dropConnections", "flushRouterConfig", "fsync",
		"invalidateUserCache", "killAnyCursor", "killAnySession", "killop", "logRotate", "setParameter", "shutdown",
		"touch", "unlock"}
	managerActions = []string{"addShard", "appendOplogNote", "applicationMessage", "cleanupOrphaned",
		"flushRouterConfig", "getDefaultRWConcern", "listSessions", "listShards", "removeShard", "replSetConfigure",
		"replSetGetConfig", "replSetGetStatus", "replSetStateChange", "setDefaultRWConcern",
		"setFeatureCompatibilityVersion"}
	managerDBActions = []string{"clearJumboFlag", "enableSharding", "moveChunk", "splitChunk", "splitVector",
		"refineCollectionShardKey", "reshardCollection"}
)

// builtIn is a role that every deployment has.
type builtIn struct {
	admin bool // known in database admin only
	// privileges returns its privileges in a database.
	privileges func(db string) []Privilege
}

// on returns a privilege.
func on(db, collection string, actions ...[]string) Privilege {
	return Privilege{Resource{DB: db, Collection: collection}, slices.Concat(actions...)}
}

func cluster(actions ...string) Privilege { return Privilege{Resource{Cluster: true}, actions} }

// inDatabase are the roles of every database, by what they grant there. With "" it is in all databases.
var inDatabase = map[string]func(db string) []Privilege{
	"read": func(db string) []Privilege { return []Privilege{on(db, "", readActions)} },
	"readWrite": func(db string) []Privilege {
		return []Privilege{on(db, "", readWriteActions)}
	},
	"dbAdmin": func(db string) []Privilege {
		return []Privilege{on(db, "", adminActions), on(db, "system.profile", profileActions)}
	},
	"userAdmin": func(db string) []Privilege { return []Privilege{on(db, "", userActions)} },
}

// union returns the privileges of several roles in a database.
func union(db string, roles ...string) (out []Privilege) {
	for _, r := range roles {
		out = append(out, inDatabase[r](db)...)
	}
	return out
}

// always returns privileges that don't depend on the database.
func always(ps ...Privilege) func(string) []Privilege { return func(string) []Privilege { return ps } }

var (
	monitor = []Privilege{cluster(monitorActions...), on("", "", monitorDBActions), on("", "system.profile",
		[]string{"find"}), on("config", "", readActions), on("local", "", readActions),
		on("local", "system.replset", []string{"find"})}
	host    = []Privilege{cluster(hostActions...), on("", "", []string{"killCursors"})}
	manager = []Privilege{cluster(managerActions...), on("", "", managerDBActions),
		on("config", "", readWriteActions), on("local", "", readWriteActions)}
	clusterAdmin = slices.Concat(monitor, host, manager, []Privilege{on("", "", []string{"dropDatabase"})})
	users        = []Privilege{on("", "", userActions), cluster("invalidateUserCache", "listDatabases", "viewUser"),
		on("admin", "system.users", readActions), on("admin", "system.roles", readActions)}
	anyDatabase = []Privilege{cluster("listDatabases")}
	backup      = []Privilege{
		cluster("appendOplogNote", "getParameter", "listDatabases", "serverStatus", "setUserWriteBlockMode"),
		on("", "", []string{"find", "listCollections", "listIndexes", "collStats", "dbStats", "changeStream"}),
		on("", "system.profile", []string{"find"}), on("admin", "system.users", []string{"find"}),
		on("admin", "system.roles", []string{"find"}), on("config", "", []string{"find", "insert", "update"})}
	restore = []Privilege{cluster("getParameter", "listDatabases", "bypassWriteBlockingMode"),
		on("", "", []string{"bypassDocumentValidation", "changeCustomData", "changePassword", "collMod",
			"convertToCapped", "createCollection", "createIndex", "createRole", "createUser", "dropCollection",
			"dropRole", "dropUser", "find", "grantRole", "insert", "listCollections", "listIndexes", "remove",
			"renameCollectionSameDB", "revokeRole", "update", "viewRole", "viewUser"}),
		on("admin", "system.users", readWriteActions), on("admin", "system.roles", readWriteActions)}
)

var builtIns = map[string]builtIn{
	"read":      {privileges: inDatabase["read"]},
	"readWrite": {privileges: inDatabase["readWrite"]},
	"dbAdmin":   {privileges: inDatabase["dbAdmin"]},
	"userAdmin": {privileges: inDatabase["userAdmin"]},
	"dbOwner":   {privileges: func(db string) []Privilege { return union(db, "readWrite", "dbAdmin", "userAdmin") }},

	"readAnyDatabase":      {true, always(append(union("", "read"), anyDatabase...)...)},
	"readWriteAnyDatabase": {true, always(append(union("", "readWrite"), anyDatabase...)...)},
	"dbAdminAnyDatabase":   {true, always(append(union("", "dbAdmin"), anyDatabase...)...)},
	"userAdminAnyDatabase": {true, always(users...)},
	"clusterMonitor":       {true, always(monitor...)},
	"hostManager":          {true, always(host...)},
	"clusterManager":       {true, always(manager...)},
	"clusterAdmin":         {true, always(clusterAdmin...)},
	"backup":               {true, always(backup...)},
	"restore":              {true, always(restore...)},
	"root": {true, always(slices.Concat(union("", "readWrite", "dbAdmin"), users, clusterAdmin, backup, restore,
		[]Privilege{on("", "system.profile", profileActions), {Resource{Any: true}, []string{"validate"}}})...)},
}

// BuiltIn returns the privileges of a built-in role; ok is false for a name that isn't one in its database.
func BuiltIn(n RoleName) (ps []Privilege, ok bool) {
	b, ok := builtIns[n.Role]
	if !ok || b.admin && n.DB != "admin" {
		return nil, false
	}
	return b.privileges(n.DB), true
}

// BuiltInNames returns the names of the built-in roles of a database, in order.
func BuiltInNames(db string) []string {
	var out []string
	for name, b := range builtIns {
		if !b.admin || db == "admin" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// known are the names of all actions, of built-in roles and others.
var known = func() set {
	s := set{}
	for _, b := range builtIns {
		for _, p := range b.privileges("db") {
			for _, a := range p.Actions {
				s[a] = struct{}{}
			}
		}
	}
	for _, a := range []string{anyAction, "internal", "changeOwnPassword", "changeOwnCustomData", "impersonate",
		"authSchemaUpgrade", "applyOps", "cpuProfiler", "dbCheck", "forceUUID", "getClusterParameter",
		"setClusterParameter", "killAnyCursor", "listCachedAndActiveUsers", "oidReset", "resync", "viewRole",
		"enableSharding", "analyzeShardKey", "rotateCertificates", "bypassDefaultMaxTimeMS"} {
		s[a] = struct{}{}
	}
	return s
}()

// Known reports whether a name is that of an action.
func Known(action string) bool {
	_, ok := known[action]
	return ok
}
