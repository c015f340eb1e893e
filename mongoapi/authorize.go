package mongoapi

import (
	"slices"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/rights"
	"github.com/orrerydb/orrery/mongoapi/update"
	"github.com/orrerydb/orrery/mongoapi/users"
)

// A user's command runs if the rights of the user contain what the command asks for. A command of the account asks for
// nothing, so it costs one comparison. What a command asks for is a function of its arguments; a command without one is
// only for the account and for users with the role root.

// may answers what a command asks for.
type may struct {
	r *request
	p *users.Principal
}

// demand is what a command asks for.
type demand func(m may) bool

// on reports whether all actions are granted on a resource.
func (m may) on(res rights.Resource, actions ...string) bool {
	for _, a := range actions {
		if !m.p.Set.Allows(res, a) {
			return false
		}
	}
	return true
}

func (m may) coll(db, name string, actions ...string) bool {
	return m.on(rights.Resource{DB: db, Collection: name}, actions...)
}

// writes is coll for a command that writes documents. That a validator doesn't check them is an action of its own.
func (m may) writes(db, name string, actions ...string) bool {
	return m.coll(db, name, actions...) && (!args.Flag(m.r.body, "bypassDocumentValidation", false) ||
		m.coll(db, name, "bypassDocumentValidation"))
}

// here is coll for the command's collection.
func (m may) here(actions ...string) bool {
	return m.r.arg.Kind() == value.String && m.coll(m.r.db, m.r.arg.Str(), actions...)
}

func (m may) db(actions ...string) bool { return m.on(rights.Resource{DB: m.r.db}, actions...) }

func (m may) cluster(actions ...string) bool { return m.on(rights.Resource{Cluster: true}, actions...) }

// anyone is the demand of commands that every user may run.
func anyone(may) bool { return true }

func onCollection(actions ...string) demand { return func(m may) bool { return m.here(actions...) } }

func onDatabase(actions ...string) demand { return func(m may) bool { return m.db(actions...) } }

func onCluster(actions ...string) demand { return func(m may) bool { return m.cluster(actions...) } }

// onNamespace is for commands whose argument is "db.collection".
func onNamespace(actions ...string) demand {
	return func(m may) bool {
		db, name, err := splitNS(m.r.arg)
		return err == nil && m.coll(db, name, actions...)
	}
}

var demands map[string]demand

func init() {
	demands = map[string]demand{
		"getMore": anyone, "killCursors": anyone, // a cursor is its user's own
		"abortTransaction": anyone, "commitTransaction": anyone, "endSessions": anyone, "killSessions": anyone,
		"refreshSessions": anyone, "startSession": anyone, "connectionStatus": anyone,
		"getLastRequestStatistics": anyone,
		"listCommands":             anyone, "getLastError": anyone, "getlasterror": anyone,

		"aggregate": func(m may) bool { return m.pipeline(m.r.arg.Str(), m.r.body.Get("pipeline")) },
		"count":     onCollection("find"),
		"distinct":  onCollection("find"),
		"find":      onCollection("find"),
		"explain":   func(m may) bool { return m.explained() },

		"bulkWrite":     func(m may) bool { return m.bulkWrites() },
		"delete":        onCollection("remove"),
		"insert":        func(m may) bool { return m.writes(m.r.db, m.r.arg.Str(), "insert") },
		"update":        func(m may) bool { return m.updates() },
		"findAndModify": func(m may) bool { return m.modifies() },
		"findandmodify": func(m may) bool { return m.modifies() },

		"collMod":         func(m may) bool { return m.here("collMod") && m.views() },
		"convertToCapped": onCollection("convertToCapped"),
		"cloneCollectionAsCapped": func(m may) bool {
			return m.here("find") && m.coll(m.r.db, m.r.body.Get("toCollection").Str(), "insert", "convertToCapped")
		},
		"create":        func(m may) bool { return (m.here("createCollection") || m.here("insert")) && m.views() },
		"createIndexes": onCollection("createIndex"),
		"deleteIndexes": onCollection("dropIndex"),
		"drop":          onCollection("dropCollection"),
		"dropDatabase":  onDatabase("dropDatabase"),
		"dropIndexes":   onCollection("dropIndex"),
		"listCollections": func(m may) bool {
			return m.db("listCollections") ||
				args.Flag(m.r.body, "nameOnly", false) && args.Flag(m.r.body, "authorizedCollections", false)
		},
		"listDatabases": anyone, // of which it sees those in which it may do something
		"listIndexes":   onCollection("listIndexes"),

		"createSearchIndexes": onCollection("createSearchIndexes"), "dropSearchIndex": onCollection("dropSearchIndex"),
		"listSearchIndexes": onCollection("listSearchIndexes"), "updateSearchIndex": onCollection("updateSearchIndex"),

		"renameCollection": func(m may) bool { return m.renames() },
		"enableSharding":   func(m may) bool { return m.on(rights.Resource{DB: m.r.arg.Str()}, "enableSharding") },
		"shardCollection":  onNamespace("enableSharding"),
		"customAction":     func(m may) bool { return m.custom() },

		"collStats": onCollection("collStats"), "collstats": onCollection("collStats"),
		"validate": onCollection("validate"),
		"reIndex":  onCollection("reIndex"),
		"compact":  onCollection("compact"), "planCacheClear": onCollection("planCacheWrite"),
		"planCacheClearFilters": onCollection("planCacheIndexFilter"),
		"planCacheListFilters":  onCollection("planCacheIndexFilter"),
		"dataSize":              onNamespace("find"), "datasize": onNamespace("find"),
		"dbStats": onDatabase("dbStats"), "dbstats": onDatabase("dbStats"),
		"dbHash": onDatabase("dbHash"), "dbhash": onDatabase("dbHash"),
		"filemd5": func(m may) bool { return m.db("find") },
		"profile": onDatabase("enableProfiler"),

		"configureFailPoint": onCluster("setParameter"), "connPoolStats": onCluster("connPoolStats"),
		"currentOp":      func(m may) bool { return ownOps(m.r.body) || m.cluster("inprog") },
		"getCmdLineOpts": onCluster("getCmdLineOpts"), "getLog": onCluster("getLog"),
		"getDefaultRWConcern": onCluster("getDefaultRWConcern"),
		"setDefaultRWConcern": onCluster("setDefaultRWConcern"),
		"getParameter":        onCluster("getParameter"),
		"getDiagnosticData": func(m may) bool {
			return m.cluster("serverStatus") && m.cluster("replSetGetStatus")
		},
		"getClusterParameter": onCluster("getClusterParameter"),
		"setClusterParameter": onCluster("setClusterParameter"),
		"hostInfo":            onCluster("hostInfo"), "killOp": onCluster("killop"),
		"replSetGetConfig": onCluster("replSetGetConfig"), "replSetGetStatus": onCluster("replSetGetStatus"),
		"features": anyone, "replSetGetRBID": anyone, "shardingState": onCluster("shardingState"),
		"replSetInitiate": onCluster("replSetConfigure"), "replSetReconfig": onCluster("replSetConfigure"),
		"serverStatus": onCluster("serverStatus"),
		"setParameter": onCluster("setParameter"), "shutdown": onCluster("shutdown"), "top": onCluster("top"),
		"fsync": onCluster("fsync"), "fsyncUnlock": onCluster("unlock"),
		"killAllSessions": onCluster("killAnySession"), "killAllSessionsByPattern": onCluster("killAnySession"),
		"setFeatureCompatibilityVersion": onCluster("setFeatureCompatibilityVersion"),

		"createUser": func(m may) bool { return m.db("createUser") && m.grants("grantRole") },
		"updateUser": func(m may) bool { return m.updatesUser() },
		"dropUser":   onDatabase("dropUser"), "dropAllUsersFromDatabase": onDatabase("dropUser"),
		"grantRolesToUser":    func(m may) bool { return m.grants("grantRole") },
		"revokeRolesFromUser": func(m may) bool { return m.grants("revokeRole") },
		"usersInfo":           func(m may) bool { return m.seesUsers() },
		"createRole":          func(m may) bool { return m.db("createRole") && m.grants("grantRole") },
		"updateRole":          func(m may) bool { return m.db("revokeRole") && m.grants("grantRole") },
		"dropRole":            onDatabase("dropRole"), "dropAllRolesFromDatabase": onDatabase("dropRole"),
		"grantRolesToRole":         func(m may) bool { return m.grants("grantRole") },
		"revokeRolesFromRole":      func(m may) bool { return m.grants("revokeRole") },
		"grantPrivilegesToRole":    func(m may) bool { return m.grants("grantRole") },
		"revokePrivilegesFromRole": func(m may) bool { return m.grants("revokeRole") },
		"rolesInfo":                func(m may) bool { return m.seesRoles() },
	}
}

// users returns the users and roles, as the request looks them up.
func (r *request) users() users.Store { return users.Store{Engine: r.s.eng, Ctx: r.ctx} }

// authorize refuses a command that the connection's user may not run.
func (r *request) authorize() error {
	p, err := r.users().Current(r.c.who)
	if err != nil {
		return err
	}
	r.c.who = p
	d := demands[r.name]
	if p.Root || d != nil && d(may{r, p}) {
		return nil
	}
	return r.notAuthorized()
}

// limited returns the user whose rights limit what the command shows; nil if nothing does.
func (r *request) limited() *users.Principal {
	if who := r.c.who; who != nil && r.s.o.Auth && !who.Root {
		return who
	}
	return nil
}

// maxShown is the longest text of a command in an error.
const maxShown = 1 << 10

// secret reports whether an argument of a command is one that no text shows. The key of distinct is a field's name.
func secret(command, name string) bool {
	return name == "pwd" || name == "payload" || name == "key" && command == "authenticate"
}

// notAuthorized is the server's error for a command that asks for more than its user may do.
func (r *request) notAuthorized() error {
	shown := ""
	for it := r.body.Iter(); it.Next() && len(shown) < maxShown; {
		if len(it.Value().Bytes()) > maxShown {
			shown += ", " + string(it.Key()) + ": .."
			continue
		}
		text := "xxx"
		if !secret(r.name, string(it.Key())) {
			text = update.Show(it.Value())
		}
		shown += ", " + string(it.Key()) + ": " + text
	}
	return merr.New(merr.Unauthorized, "not authorized on %s to execute command { %s }", r.db,
		shown[min(2, len(shown)):])
}

// updates is the demand of update.
func (m may) updates() bool {
	return m.writes(m.r.db, m.r.arg.Str(), "update") && (!m.upserts() || m.here("insert"))
}

// upserts reports whether a statement of an update may insert.
func (m may) upserts() bool {
	stmts, err := m.r.docs("updates")
	if err != nil {
		return false // the command is refused for that
	}
	for _, st := range stmts {
		if args.Flag(st, "upsert", false) {
			return true
		}
	}
	return false
}

// modifies is the demand of findAndModify.
func (m may) modifies() bool {
	switch b := m.r.body; {
	case !m.here("find"):
		return false
	case args.Flag(b, "remove", false):
		return m.here("remove")
	case args.Flag(b, "upsert", false) && !m.here("insert"):
		return false
	}
	return m.writes(m.r.db, m.r.arg.Str(), "update")
}

// views is the demand of a view: who makes or changes one must be able to read what it shows then.
func (m may) views() bool {
	on, pipeline := args.Given(m.r.body, "viewOn"), args.Given(m.r.body, "pipeline")
	if !on.IsDefined() && !pipeline.IsDefined() {
		return true
	}
	if m.r.name == "collMod" { // what isn't given stays
		old, err := m.r.viewDoc(m.r.db, m.r.arg.Str())
		if err != nil {
			return false
		}
		if !on.IsDefined() {
			on = old.Get("viewOn")
		}
		if !pipeline.IsDefined() {
			pipeline = old.Get("pipeline")
		}
	}
	return on.Kind() != value.String || m.coll(m.r.db, on.Str(), "find") && m.pipeline("", pipeline)
}

// renames is the demand of renameCollection: the right to rename within a database, or those to do the same by other
// commands. By the former nobody may see a collection under another name who couldn't read it, nor reach one that the
// server keeps for itself.
func (m may) renames() bool {
	db, from, err := splitNS(m.r.arg)
	if err != nil {
		return true
	}
	toDB, to, err := splitNS(m.r.body.Get("to"))
	if err != nil {
		return true
	}
	if expr.Truthy(m.r.body.Get("dropTarget")) && !m.coll(toDB, to, "dropCollection") {
		return false
	}
	if db == toDB && !rights.System(from) && !rights.System(to) &&
		m.on(rights.Resource{DB: db}, "renameCollectionSameDB") &&
		(m.coll(db, from, "find") || !m.coll(toDB, to, "find")) {
		return true
	}
	return m.coll(db, from, "find", "dropCollection") && m.coll(toDB, to, "insert", "createIndex")
}

// custom is the demand of the service's extension commands.
func (m may) custom() bool {
	name := m.r.body.Get("collection").Str()
	switch m.r.arg.Str() {
	case "GetDatabase":
		return m.db("dbStats")
	case "GetCollection":
		return m.coll(m.r.db, name, "collStats")
	case "CreateCollection":
		return m.coll(m.r.db, name, "createCollection")
	case "UpdateCollection":
		return m.coll(m.r.db, name, "collMod")
	}
	return false
}

// explained is the demand of the command that explain contains.
func (m may) explained() bool {
	inner := m.r.arg
	it := inner.Iter()
	if inner.Kind() != value.Object || !it.Next() {
		return true // which is refused for that
	}
	name := string(it.Key())
	d := demands[name]
	if d == nil || !explains[name] {
		return false
	}
	r := *m.r
	r.name, r.arg, r.body, r.seqs = name, it.Value(), inner, nil
	return d(may{&r, m.p})
}

// pipeline is the demand of a pipeline on a collection ("": on none).
func (m may) pipeline(name string, stages value.Value) bool {
	db := m.r.db
	if stages.Kind() != value.Array {
		return true // which is refused for that
	}
	reads := name != ""
	for i, st := range value.Elements(stages) {
		it := st.Iter()
		if st.Kind() != value.Object || !it.Next() {
			return true
		}
		arg := it.Value()
		ok := true
		switch string(it.Key()) {
		case "$lookup", "$graphLookup":
			ok = m.joins(arg, "from")
		case "$unionWith":
			ok = m.joins(arg, "coll")
			if arg.Kind() == value.String {
				ok = m.coll(db, arg.Str(), "find")
			}
		case "$facet":
			for f := arg.Iter(); arg.Kind() == value.Object && f.Next() && ok; {
				ok = m.pipeline("", f.Value())
			}
		case "$out":
			to, toDB := target(arg, db)
			ok = m.writes(toDB, to, "insert", "remove")
		case "$merge":
			into := arg
			if v := arg.Get("into"); arg.Kind() == value.Object && v.IsDefined() {
				into = v
			}
			to, toDB := target(into, db)
			ok = m.writes(toDB, to, "insert", "update")
		case "$changeStream":
			ok, reads = m.watches(name, arg), false
		case "$collStats":
			ok, reads = m.coll(db, name, "collStats"), false
		case "$indexStats":
			ok, reads = m.coll(db, name, "indexStats"), false
		case "$listCatalog":
			ok, reads = m.coll(db, name, "listCollections", "listIndexes"), false
			if name == "" || name == noCollection {
				ok = m.cluster("listDatabases") && m.on(rights.Resource{}, "listCollections", "listIndexes")
			}
		case "$listSearchIndexes":
			ok, reads = m.coll(db, name, "listSearchIndexes"), false
		case "$planCacheStats":
			ok, reads = m.coll(db, name, "planCacheRead"), false
		case "$currentOp":
			ok, reads = !args.Flag(arg, "allUsers", false) || m.cluster("inprog"), false
		case "$listSessions", "$listLocalSessions":
			// everybody may see their own
			own := !args.Flag(arg, "allUsers", false) && !args.Given(arg, "users").IsDefined()
			ok, reads = own || m.cluster("listSessions"), false
		case "$documents":
			reads = reads && i > 0
		}
		if !ok {
			return false
		}
	}
	return !reads || m.coll(db, name, "find")
}

// joins is the demand of a stage that reads the collection in one of its arguments, and of its pipeline.
func (m may) joins(arg value.Value, name string) bool {
	from := arg.Get(name)
	if from.Kind() == value.String && !m.coll(m.r.db, from.Str(), "find") {
		return false
	}
	p := arg.Get("pipeline")
	return p.Kind() != value.Array || m.pipeline("", p)
}

// watches is the demand of a change stream on a collection, a database or the deployment.
func (m may) watches(name string, arg value.Value) bool {
	switch {
	case args.Flag(arg, "allChangesForCluster", false):
		return m.on(rights.Resource{}, "changeStream", "find")
	case name == "" || name == noCollection:
		return m.db("changeStream", "find")
	}
	return m.coll(m.r.db, name, "changeStream", "find")
}

// target reads the collection that $out or $merge writes.
func target(v value.Value, db string) (name, in string) {
	if v.Kind() == value.String {
		return v.Str(), db
	}
	if d := v.Get("db"); v.Kind() == value.Object && d.Str() != "" { // as host.Write reads it
		db = d.Str()
	}
	return v.Get("coll").Str(), db
}

// grants is the demand of a command that grants or revokes: the action in the database of each role, and of each
// privilege.
func (m may) grants(action string) bool {
	for _, v := range value.Elements(args.Given(m.r.body, "roles")) {
		db := m.r.db
		if d := v.Get("db"); v.Kind() == value.Object && d.Kind() == value.String {
			db = d.Str()
		}
		if !m.on(rights.Resource{DB: db}, action) {
			return false
		}
	}
	for _, v := range value.Elements(args.Given(m.r.body, "privileges")) {
		p, err := users.ReadPrivilege(v)
		if err != nil {
			continue // the command is refused for that
		}
		switch res := p.Resource; {
		case res.Cluster, res.Any, res.DB == "":
			if !m.on(rights.Resource{DB: users.DB}, action) {
				return false
			}
		case !m.on(rights.Resource{DB: res.DB}, action):
			return false
		}
	}
	return true
}

// updatesUser is the demand of updateUser. A user may have the right to change its own password.
func (m may) updatesUser() bool {
	own := m.r.arg.Str() == m.p.Name.User && m.r.db == m.p.Name.DB
	for arg, action := range map[string]string{"pwd": "changePassword", "mechanisms": "changePassword",
		"customData": "changeCustomData"} {
		if !args.Given(m.r.body, arg).IsDefined() || m.db(action) {
			continue
		}
		if !own || !m.db("changeOwn"+action[len("change"):]) {
			return false
		}
	}
	return !args.Given(m.r.body, "roles").IsDefined() || m.db("revokeRole") && m.grants("grantRole")
}

// seesUsers is the demand of usersInfo: a user may see itself.
func (m may) seesUsers() bool {
	names, all, db, err := m.r.wantedUsers()
	if err != nil {
		return true
	}
	if args.Flag(m.r.body, "showCredentials", false) && !m.cluster("viewUser") && !m.db("viewUser") {
		return false
	}
	if all && db == "" {
		return m.cluster("viewUser")
	}
	if all {
		return m.db("viewUser")
	}
	for _, n := range names {
		if n != m.p.Name && !m.on(rights.Resource{DB: n.DB}, "viewUser") {
			return false
		}
	}
	return true
}

// seesRoles is the demand of rolesInfo: a user may see its own roles.
func (m may) seesRoles() bool {
	list := []value.Value{m.r.arg}
	if m.r.arg.Kind() == value.Array {
		list = value.Elements(m.r.arg)
	}
	for _, v := range list {
		n := rights.RoleName{Role: v.Str(), DB: m.r.db}
		if v.Kind() == value.Object {
			n = rights.RoleName{Role: v.Get("role").Str(), DB: v.Get("db").Str()}
		}
		if !m.on(rights.Resource{DB: n.DB}, "viewRole") && !m.has(n) {
			return false
		}
	}
	return true
}

// has reports whether a user has a role.
func (m may) has(n rights.RoleName) bool {
	roles, err := m.r.users().RolesOf(m.p)
	return err == nil && slices.Contains(roles, n)
}
