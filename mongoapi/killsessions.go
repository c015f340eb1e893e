package mongoapi

import (
	"bytes"
	"strconv"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// killAllSessions and killAllSessionsByPattern end the transactions and remove the cursors of sessions, also of those
// of other users. They select sessions by patterns. A pattern selects those that have everything that it names, so an
// empty one selects all. No pattern at all stands for an empty one.
//
// Example: {killAllSessionsByPattern: [{users: [{user: "ann", db: "shop"}]}]} ends what Ann's sessions have open.
type sessionPattern struct {
	lsid []byte // nil: any
	uid  []byte // nil: any user
}

// selects reports whether a pattern names a session of a user.
func (p sessionPattern) selects(user string, lsid []byte) bool {
	return (p.lsid == nil || bytes.Equal(p.lsid, lsid)) &&
		(p.uid == nil || bytes.Equal(p.uid, uidOf(user).Bytes()))
}

var (
	sessionUser        = args.Set{"user": args.String, "db": args.String}
	sessionPatternArgs = args.Set{"lsid": args.Object, "uid": args.Any, "users": args.Documents,
		"roles": args.Documents}
)

func killAllSessions(r *request, dst []byte) ([]byte, error) {
	if err := args.CheckDocuments(r.name, []byte(r.name), r.arg); err != nil {
		return dst, err
	}
	var ps []sessionPattern
	for _, u := range value.Elements(r.arg) {
		uid, err := readSessionUser(r.name+"."+r.name, u)
		if err != nil {
			return dst, err
		}
		ps = append(ps, sessionPattern{uid: uid})
	}
	return dst, r.killSessions(ps)
}

func killAllSessionsByPattern(r *request, dst []byte) ([]byte, error) {
	if err := args.CheckDocuments(r.name, []byte(r.name), r.arg); err != nil {
		return dst, err
	}
	var ps []sessionPattern
	for i, d := range value.Elements(r.arg) {
		where := r.name + "." + r.name + "." + strconv.Itoa(i)
		if err := sessionPatternArgs.Check(where, d); err != nil {
			return dst, err
		}
		all, err := readSessionPattern(where, d)
		if err != nil {
			return dst, err
		}
		ps = append(ps, all...)
	}
	return dst, r.killSessions(ps)
}

// readSessionUser reads a user, and returns what sessions name it by.
func readSessionUser(where string, d value.Value) ([]byte, error) {
	if err := sessionUser.Check(where, d); err != nil {
		return nil, err
	}
	for _, name := range []string{"user", "db"} {
		if !args.Given(d, name).IsDefined() {
			return nil, missingField(where + "." + name)
		}
	}
	return uidOf(d.Get("user").Str() + "@" + d.Get("db").Str()).Bytes(), nil
}

// readSessionPattern reads a pattern. Each of its users makes one of its own. Roles have no effect on what is selected.
func readSessionPattern(where string, d value.Value) (out []sessionPattern, err error) {
	var p sessionPattern
	if lsid := args.Given(d, "lsid"); lsid.IsDefined() {
		id := lsid.Get("id")
		if id.Kind() != value.UUID {
			return nil, merr.New(merr.InvalidUUID, "%s.lsid.id must be a UUID", where)
		}
		p.lsid, p.uid = id.Bytes(), lsid.Get("uid").Bytes()
	}
	if uid := args.Given(d, "uid"); uid.IsDefined() {
		if uid.Kind() != value.Binary {
			return nil, args.Want(false, where, []byte("uid"), uid, "type 'binData'")
		}
		p.uid = uid.Bytes()
	}
	users := value.Elements(args.Given(d, "users"))
	if len(users) == 0 {
		return []sessionPattern{p}, nil
	}
	for _, u := range users {
		one := p
		if one.uid, err = readSessionUser(where+".users", u); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// killSessions ends what the sessions have open that one of the patterns selects.
func (r *request) killSessions(ps []sessionPattern) error {
	if len(ps) == 0 {
		ps = []sessionPattern{{}}
	}
	selected := func(user string, lsid []byte) bool {
		for _, p := range ps {
			if p.selects(user, lsid) {
				return true
			}
		}
		return false
	}
	for _, t := range r.s.sessions.running(func(t *transaction) bool { return selected(t.user, t.lsid.Bytes()) }) {
		r.s.abort(t)
	}
	cs := r.s.cursors
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.m {
		if c.lsid != nil && selected(c.user, c.lsid) {
			cs.remove(c)
		}
	}
	return nil
}
