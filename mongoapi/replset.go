package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// The server announces a replica set of which it is the only member and the primary. Drivers send retryable writes, and
// causally consistent reads, only to a member of a replica set. There is no other member, no election and no vote: the
// fields below are what a set with one member always has.

// DefaultSetName is the replica set's name in the service's connection strings.
const DefaultSetName = "globaldb"

// electionID is the identifier of the first election of a replica set.
var electionID = []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1}

// term is the number of the election.
const term = 1

// member returns the address of the replica set's member: the one that the client dialled, so that a driver that
// discovers the set finds the same server. Behind a mapped port that is wrong, so Advertise replaces it.
func (r *request) member() string {
	if a := r.s.o.Advertise; a != "" {
		return a
	}
	return r.c.nc.LocalAddr().String()
}

// appendMember appends what hello says about the replica set.
func (r *request) appendMember(dst []byte) []byte {
	addr := r.member()
	dst = bson.AppendString(dst, "setName", r.s.o.SetName)
	dst = bson.AppendInt32(dst, "setVersion", 1)
	dst = bson.AppendBool(dst, "secondary", false)
	dst = bson.AppendStrings(dst, "hosts", addr)
	dst = bson.AppendString(dst, "primary", addr)
	dst = bson.AppendString(dst, "me", addr)
	dst = value.AppendElement(dst, "electionId", value.ObjectIDOf(electionID))
	at, dst := bson.BeginObject(dst, "lastWrite")
	dst = r.appendOpTime(dst, "opTime")
	dst = bson.AppendDate(dst, "lastWriteDate", r.start.UnixMilli())
	dst = r.appendOpTime(dst, "majorityOpTime")
	dst = bson.AppendDate(dst, "majorityWriteDate", r.start.UnixMilli())
	return bson.End(dst, at)
}

// appendOpTime appends the position of the last write.
func (r *request) appendOpTime(dst []byte, name string) []byte {
	at, dst := bson.BeginObject(dst, name)
	dst = value.AppendElement(dst, "ts", value.TimestampOf(r.s.times.tick(r.start, false)))
	return bson.End(bson.AppendInt64(dst, "t", term), at)
}

// replicaSet refuses a command about the replica set that isn't meant for this server.
func (r *request) replicaSet() error {
	switch {
	case r.db != "admin":
		return merr.New(merr.Unauthorized, "%s may only be run against the admin database.", r.name)
	case r.s.o.Standalone:
		return merr.New(merr.NoReplicationEnabled, "not running with --replSet")
	}
	return nil
}

func replSetGetStatus(r *request, dst []byte) ([]byte, error) {
	if err := r.replicaSet(); err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "set", r.s.o.SetName)
	dst = bson.AppendDate(dst, "date", r.start.UnixMilli())
	dst = bson.AppendInt32(dst, "myState", 1)
	dst = bson.AppendInt64(dst, "term", term)
	dst = appendNoSource(dst)
	dst = bson.AppendInt64(dst, "heartbeatIntervalMillis", 2000)
	dst = bson.AppendInt32(dst, "majorityVoteCount", 1)
	dst = bson.AppendInt32(dst, "writeMajorityCount", 1)
	dst = bson.AppendInt32(dst, "votingMembersCount", 1)
	dst = bson.AppendInt32(dst, "writableVotingMembersCount", 1)
	oa, dst := bson.BeginObject(dst, "optimes")
	for _, name := range []string{"lastCommittedOpTime", "readConcernMajorityOpTime", "appliedOpTime",
		"durableOpTime"} {
		dst = r.appendOpTime(dst, name)
	}
	for _, name := range []string{"lastCommittedWallTime", "lastAppliedWallTime", "lastDurableWallTime"} {
		dst = bson.AppendDate(dst, name, r.start.UnixMilli())
	}
	dst = bson.End(dst, oa)
	at, dst := bson.BeginArray(dst, "members")
	ma, dst := bson.BeginObject(dst, "0")
	dst = bson.AppendInt32(dst, "_id", 0)
	dst = bson.AppendString(dst, "name", r.member())
	dst = bson.AppendDouble(dst, "health", 1)
	dst = bson.AppendInt32(dst, "state", 1)
	dst = bson.AppendString(dst, "stateStr", "PRIMARY")
	dst = bson.AppendInt64(dst, "uptime", int64(r.start.Sub(r.s.began).Seconds()))
	dst = r.appendOpTime(dst, "optime")
	for _, name := range []string{"optimeDate", "lastAppliedWallTime", "lastDurableWallTime"} {
		dst = bson.AppendDate(dst, name, r.start.UnixMilli())
	}
	dst = appendNoSource(dst)
	dst = bson.AppendString(dst, "infoMessage", "")
	began := r.s.began // it was elected when it began
	dst = value.AppendElement(dst, "electionTime", value.TimestampOf(uint64(began.Unix())<<32|1))
	dst = bson.AppendDate(dst, "electionDate", began.Unix()*1000)
	dst = bson.AppendInt32(dst, "configVersion", 1)
	dst = bson.AppendInt32(dst, "configTerm", term)
	dst = bson.AppendBool(dst, "self", true)
	dst = bson.AppendString(dst, "lastHeartbeatMessage", "")
	return bson.End(bson.End(dst, ma), at), nil
}

// appendNoSource says that a member replicates from no other one.
func appendNoSource(dst []byte) []byte {
	return bson.AppendInt32(bson.AppendString(dst, "syncSourceHost", ""), "syncSourceId", -1)
}

// replSetGetRBID shows the number that rises when a member takes back writes. Here none is taken back.
func replSetGetRBID(r *request, dst []byte) ([]byte, error) {
	if err := r.replicaSet(); err != nil {
		return dst, err
	}
	return bson.AppendInt32(dst, "rbid", 1), nil
}

func replSetGetConfig(r *request, dst []byte) ([]byte, error) {
	if err := r.replicaSet(); err != nil {
		return dst, err
	}
	return r.appendConfig(dst), nil
}

// appendConfig appends the set's configuration. Nothing changes it, so its version is always 1.
func (r *request) appendConfig(dst []byte) []byte {
	at, dst := bson.BeginObject(dst, "config")
	dst = bson.AppendString(dst, "_id", r.s.o.SetName)
	dst = bson.AppendInt32(dst, "version", 1)
	dst = bson.AppendInt32(dst, "term", term)
	la, dst := bson.BeginArray(dst, "members")
	ma, dst := bson.BeginObject(dst, "0")
	dst = bson.AppendInt32(dst, "_id", 0)
	dst = bson.AppendString(dst, "host", r.member())
	dst = bson.AppendBool(dst, "arbiterOnly", false)
	dst = bson.AppendBool(dst, "buildIndexes", true)
	dst = bson.AppendBool(dst, "hidden", false)
	dst = bson.AppendDouble(dst, "priority", 1)
	ta, dst := bson.BeginObject(dst, "tags")
	dst = bson.End(dst, ta)
	dst = bson.AppendInt64(dst, "secondaryDelaySecs", 0)
	dst = bson.AppendInt32(dst, "votes", 1)
	dst = bson.End(bson.End(dst, ma), la)
	dst = bson.AppendInt64(dst, "protocolVersion", 1)
	dst = bson.AppendBool(dst, "writeConcernMajorityJournalDefault", true)
	return bson.End(appendSettings(dst), at)
}

// setSettings are the set's settings: MongoDB's defaults. There are no other members that they would matter for.
var setSettings = []struct {
	name string
	n    int32
}{{"heartbeatIntervalMillis", 2000}, {"heartbeatTimeoutSecs", 10}, {"electionTimeoutMillis", 10000},
	{"catchUpTimeoutMillis", -1}, {"catchUpTakeoverDelayMillis", 30000}}

func appendSettings(dst []byte) []byte {
	at, dst := bson.BeginObject(dst, "settings")
	dst = bson.AppendBool(dst, "chainingAllowed", true)
	for _, s := range setSettings {
		dst = bson.AppendInt32(dst, s.name, s.n)
	}
	ma, dst := bson.BeginObject(dst, "getLastErrorModes")
	dst = bson.End(dst, ma)
	da, dst := bson.BeginObject(dst, "getLastErrorDefaults")
	dst = bson.AppendInt32(bson.AppendInt32(dst, "w", 1), "wtimeout", 0)
	return bson.End(bson.End(dst, da), at)
}

// configName is the collection of the database local with the set's configuration, which programs read. It is a view of
// what replSetGetConfig answers.
const configName = "system.replset"

// hasConfig reports whether a name is that of the collection with the set's configuration.
func (r *request) hasConfig(db, name string) bool {
	return name == configName && db == "local" && !r.s.o.Standalone
}

// configStage returns the stage that makes the configuration.
func (r *request) configStage() value.Value {
	at, b := bson.Begin(nil)
	config := value.ObjectOf(bson.End(r.appendConfig(b), at)).Get("config")
	return single("$documents", value.MakeArray([]value.Value{single("$literal", config)}))
}

func replSetInitiate(r *request, dst []byte) ([]byte, error) {
	if err := r.replicaSet(); err != nil {
		return dst, err
	}
	return dst, merr.New(merr.AlreadyInitialized, "already initialized")
}

// replSetReconfig takes a configuration that says what is so, as programs that start a set give it back. Others are
// refused: there is one member.
func replSetReconfig(r *request, dst []byte) ([]byte, error) {
	if err := r.replicaSet(); err != nil {
		return dst, err
	}
	if r.arg.Kind() != value.Object {
		return dst, merr.New(merr.BadValue, "no configuration specified")
	}
	if !args.Flag(r.body, "force", false) {
		if n, ok := num.ToInt64(r.arg.Get("version"), true); !ok || n <= 1 {
			return dst, merr.New(merr.IncompatibleSetConfig, "New replica set configuration version must be greater "+
				"than old, but %d is not greater than 1 for replica set %s", n, r.s.o.SetName)
		}
	}
	at, b := bson.Begin(nil)
	now := value.ObjectOf(bson.End(r.appendConfig(b), at)).Get("config")
	if name := r.arg.Get("_id"); value.CompareBSON(name, now.Get("_id")) != 0 {
		return dst, merr.New(merr.IncompatibleSetConfig, "New and old configurations differ in replica set name; old "+
			"was %s, and new is %s", r.s.o.SetName, name.Str())
	}
	changed := merr.New(merr.CommandNotSupported, "another configuration of the replica set is not supported by this "+
		"server")
	ms := r.arg.Get("members")
	if ms.Len() != 1 || !sameSettings(ms.At(0), now.Get("members").At(0)) || !sameSettings(r.arg, now) {
		return dst, changed
	}
	return dst, nil
}

// sameSettings reports whether all fields of a configuration have the values of the present one. Those that count
// changes, and objects below, aren't compared.
func sameSettings(given, now value.Value) bool {
	for it := given.Iter(); it.Next(); {
		switch name := string(it.Key()); name {
		case "version", "term", "members", "settings", "tags":
		default:
			if value.CompareBSON(it.Value(), now.Get(name)) != 0 {
				return false
			}
		}
	}
	return true
}
