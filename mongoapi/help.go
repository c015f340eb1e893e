package mongoapi

import (
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
)

// helps has what help and listCommands say of each command: a line with its name and the text.
const helps = `
abortTransaction ends a transaction and takes back its writes
aggregate runs a pipeline: {aggregate: <collection or 1>, pipeline: [<stages>], cursor: {}}
authenticate logs in by a mechanism that needs one message
buildInfo shows the version of the server
bulkWrite inserts, updates and deletes in several collections: {bulkWrite: 1, ops: [..], nsInfo: [..]}
cloneCollectionAsCapped copies a collection into a new capped one
collMod changes the options of a collection or of one of its indexes
collStats shows the size of a collection: {collStats: <collection>, scale: 1}
commitTransaction ends a transaction and keeps its writes
compact gives the disk what a collection doesn't use any more; here the store does it by itself
configureFailPoint makes commands fail, for tests of clients
connPoolStats shows the connections to other servers
connectionStatus shows the users of this connection and their roles
convertToCapped makes a collection a capped one
count counts documents: {count: <collection>, query: <filter>}
create makes a collection or a view
createIndexes makes indexes: {createIndexes: <collection>, indexes: [{key: <key>, name: <name>}]}
createRole makes a role in this database
createSearchIndexes makes search indexes
createUser makes a user in this database
currentOp lists the running commands
customAction runs an extension command of Azure Cosmos DB
dataSize shows how many bytes the documents of a collection have
dbHash shows the MD5 of each collection of this database
dbStats shows the size of this database
delete deletes documents: {delete: <collection>, deletes: [{q: <filter>, limit: <0 or 1>}]}
deleteIndexes is dropIndexes
distinct lists the values of a field: {distinct: <collection>, key: <field>, query: <filter>}
drop removes a collection or a view
dropAllRolesFromDatabase removes all roles of this database
dropAllUsersFromDatabase removes all users of this database
dropDatabase removes this database
dropIndexes removes indexes: {dropIndexes: <collection>, index: <name, key or "*">}
dropRole removes a role
dropSearchIndex removes a search index
dropUser removes a user
enableSharding has nothing to do here: every database may have sharded collections
endSessions ends sessions
explain shows the plan of a command
features shows what the server can do, for old clients
filemd5 shows the MD5 of a file of GridFS
find reads documents: {find: <collection>, filter: <filter>, sort: <order>, limit: <n>}
findAndModify changes or removes one document and returns it
fsync makes all writes durable; here they are when they are answered
fsyncUnlock ends the lock of fsync
getClusterParameter shows parameters of all servers: {getClusterParameter: <name, names or "*">}
getCmdLineOpts shows the command line of the server
getDefaultRWConcern shows the read and write concern of commands that have none
getDiagnosticData shows figures of the server
getLastError is no longer supported
getLastRequestStatistics shows the charge of the last command on this connection
getLog shows the last lines of a log: {getLog: <name or "*">}
getMore reads the next documents of a cursor
getParameter shows parameters of the server: {getParameter: <1, "*" or options>, <name>: 1}
grantPrivilegesToRole gives privileges to a role
grantRolesToRole gives roles to a role
grantRolesToUser gives roles to a user
hello describes the server
hostInfo describes the machine
insert inserts documents: {insert: <collection>, documents: [..]}
isMaster describes the server, as hello does
killAllSessions ends the sessions of users
killAllSessionsByPattern ends the sessions that fit patterns
killCursors closes cursors
killOp ends a running command: {killOp: 1, op: <opid>}
killSessions ends sessions
listCollections lists the collections and views of this database
listCommands lists the commands
listDatabases lists the databases
listIndexes lists the indexes of a collection
listSearchIndexes lists the search indexes of a collection
logout ends the login of this connection
mapReduce runs JavaScript functions over a collection
ping answers, and does nothing else
planCacheClear forgets the cached plans of a collection; here no plans are cached
planCacheClearFilters removes the index filters of a collection, or that of one query
planCacheListFilters lists the index filters of a collection
profile sets what of this database is profiled: {profile: <level>, slowms: <n>}
reIndex builds the indexes of a collection again
refreshSessions keeps sessions alive
renameCollection gives a collection another name
replSetGetConfig shows the configuration of the replica set
replSetGetRBID shows how often the member has taken back writes: never
replSetGetStatus shows the members of the replica set
replSetInitiate makes a replica set
replSetReconfig changes the configuration of the replica set
revokePrivilegesFromRole takes privileges from a role
revokeRolesFromRole takes roles from a role
revokeRolesFromUser takes roles from a user
rolesInfo shows roles
saslContinue goes on with a login
saslStart begins a login
serverStatus shows figures of the server
setClusterParameter sets a parameter of all servers: {setClusterParameter: {<name>: <value>}}
setDefaultRWConcern sets the read and write concern of commands that have none
setFeatureCompatibilityVersion sets the version whose features are used
setParameter sets parameters of the server: {setParameter: 1, <name>: <value>}
shardCollection gives a collection a shard key
shardingState shows that the server is no shard
shutdown ends the server
startSession makes a session
top shows how much time each collection took
update changes documents: {update: <collection>, updates: [{q: <filter>, u: <change>}]}
updateRole changes a role
updateSearchIndex changes a search index
updateUser changes a user
usersInfo shows users
validate checks a collection and its indexes
whatsmyuri shows the address of this connection
`

// helpOf returns the name of a command and the text about it. Some commands have another name too, which differs in
// case only.
func helpOf(name string) (string, string) {
	for line := range strings.Lines(helps) {
		if own, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && strings.EqualFold(own, name) {
			return own, text
		}
	}
	return name, "no help defined"
}

// help answers a command with the argument help, which isn't run.
func help(r *request, dst []byte) ([]byte, error) {
	name, text := helpOf(r.name)
	if name == "getParameter" || name == "setParameter" {
		names := make([]string, 0, len(parameters))
		for p := range parameters {
			names = append(names, p)
		}
		sort.Strings(names)
		text += "\nsupported:\n  " + strings.Join(names, "\n  ") + "\n"
	}
	return bson.AppendString(dst, "help", "help for: "+name+" "+text), nil
}
