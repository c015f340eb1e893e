package mongoapi

import (
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/users"
)

const (
	sessionMinutes = 30
	// maxSessions limits the sessions whose last write is kept, or whose transaction runs, and maxReplies the bytes of
	// all their replies.
	maxSessions = 100_000
	maxReplies  = 32 << 20
)

// sessions keep, for each session with retryable writes, the reply to its last write. A driver that didn't get the
// reply sends the same command again and gets the kept reply. They are in memory only. What a
// restart must not lose is in the store: marks of statements, or in a shared store their records.
//
// Example: insert with lsid L and txnNumber 3 is executed, and its reply is lost. The driver repeats it with the same
// lsid and txnNumber. once finds the kept reply for (L, 3) and returns it without inserting again.
type sessions struct {
	clk  *clock.Clock
	mu   sync.Mutex
	m    map[[16]byte]*session
	size int // bytes of all replies
	open map[*transaction]struct{}
}

type session struct {
	turn     chan struct{} // of one: full while the write runs, so that a repeated command waits for it
	txn      int64
	multi    *transaction       // number txn, if that is a transaction's
	done     map[uint32]outcome // statements of command txn that were made before this process began
	recalled bool               // done was looked for
	reply    []byte             // the complete reply document
	used     time.Time
	size     int // bytes of reply as counted; guarded by this lock and that of all sessions
	running  int // its transactions that run; guarded by the lock of all sessions
	key      [16]byte
	id       [16]byte // as its client knows it
	user     string
}

func newSessions(clk *clock.Clock) *sessions {
	return &sessions{clk: clk, m: map[[16]byte]*session{}, open: map[*transaction]struct{}{}}
}

func key16(b []byte) (k [16]byte) {
	copy(k[:], b)
	return k
}

// sessionKey returns what a session of the request's user is kept under. Users have sessions of their own, also if they
// use the same id.
func (r *request) sessionKey(id []byte) [16]byte {
	if r.c.who == nil {
		return key16(id)
	}
	h := sha256.Sum256(append([]byte(r.c.user+"\x00"), id...))
	return key16(h[:])
}

// uid returns what an lsid names its user by.
func (r *request) uid() value.Value { return uidOf(r.c.user) }

func uidOf(user string) value.Value {
	uid := sha256.Sum256([]byte(fullName(user)))
	return value.BinaryOf(0, uid[:])
}

// fullName returns a user as sessions name it: with its database, which is admin for the account.
func fullName(user string) string {
	if user == "" || strings.Contains(user, "@") {
		return user
	}
	return user + "@" + users.DB
}

// session returns the request's session.
func (r *request) session() (*session, error) {
	id := r.lsid.Bytes()
	return r.s.sessions.get(r.sessionKey(id), key16(id), r.c.user)
}

// get returns a session, which it makes if necessary. If there are too many, another one is removed.
func (ss *sessions) get(k, id [16]byte, user string) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.m[k]
	if s == nil {
		if len(ss.m) >= maxSessions && !ss.drop(nil) {
			return nil, merr.New(merr.TooManyLogicalSessions, "Unable to add session into the cache because the "+
				"number of active sessions is too high")
		}
		s = &session{turn: make(chan struct{}, 1), txn: -1, key: k, id: id, user: user}
		ss.m[k] = s
	}
	s.used = ss.clk.Now()
	return s, nil
}

// drop removes any session except but and those with a transaction that runs. It reports whether there was one. A
// restart would drop all of them anyway. The caller holds the lock.
func (ss *sessions) drop(but *session) bool {
	for _, s := range ss.m {
		if s != but && s.running == 0 {
			ss.remove(s)
			return true
		}
	}
	return false
}

// remove removes a session. The caller holds the lock.
func (ss *sessions) remove(s *session) {
	if ss.m[s.key] == s {
		delete(ss.m, s.key)
		ss.size -= s.size
	}
}

// count counts the bytes of a session's new reply, and removes sessions if the total is too large.
func (ss *sessions) count(s *session, n int) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.m[s.key] != s {
		return
	}
	ss.size += n - s.size
	s.size = n
	for ss.size > maxReplies && ss.drop(s) {
	}
}

// known returns the number of sessions.
func (ss *sessions) known() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.m)
}

func (ss *sessions) expire() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	now := ss.clk.Now()
	for _, s := range ss.m {
		if now.Sub(s.used) > sessionMinutes*time.Minute {
			ss.remove(s)
		}
	}
}

// sessionUse is a session, whose it is, and when it was used last.
type sessionUse struct {
	id   [16]byte
	user string
	last time.Time
}

// all returns the sessions.
func (ss *sessions) all() (out []sessionUse) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.m {
		out = append(out, sessionUse{s.id, s.user, s.used})
	}
	return out
}

func (ss *sessions) forget(id [16]byte) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.m[id]; s != nil {
		ss.remove(s)
	}
}

// enter waits until no other command of the session runs, or the request ends. The caller leaves the session then.
func (r *request) enter(s *session) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-r.ctx.Done():
		return status.Wrap(status.Timeout, r.ctx.Err(), "The request took too long.")
	}
}

func (s *session) leave() { <-s.turn }

// once runs a retryable write, or returns the kept reply.
func (r *request) once(dst []byte, def command) ([]byte, error) {
	s, err := r.session()
	if err != nil {
		return dst, err
	}
	if err := r.enter(s); err != nil {
		return dst, err
	}
	defer s.leave()
	if err := r.recall(s); err != nil {
		return dst, err
	}
	switch {
	case r.txn < s.txn:
		return dst, r.tooOld(s.txn)
	case s.multi != nil && r.txn == s.txn:
		return dst, merr.New(merr.IncompleteTransaction, "Cannot retry a retryable write that has been converted into "+
			"a transaction")
	case s.multi != nil:
		r.s.abort(s.multi)
		s.multi = nil
	case r.txn == s.txn && s.reply != nil:
		return r.repeated(dst, s.reply), nil
	}
	if s.done != nil && r.txn == s.txn {
		r.done = s.done
	} else {
		s.done = nil
	}
	at := len(dst)
	out, err := r.call(dst, def)
	err = r.repeatable(err)
	if s.txn = r.txn; err != nil || r.failure != nil && r.failure.Code != 0 {
		s.reply = nil
	} else {
		s.reply = append([]byte(nil), out[at:]...)
	}
	if len(s.reply) != s.size {
		r.s.sessions.count(s, len(s.reply))
	}
	return out, err
}

func startSession(r *request, dst []byte) ([]byte, error) {
	id := r.s.clk.UUID()
	at, dst := bson.BeginObject(dst, "id")
	dst = value.AppendElement(dst, "id", value.UUIDOf(id[:]))
	dst = bson.End(dst, at)
	return bson.AppendInt32(dst, "timeoutMinutes", sessionMinutes), nil
}

// sessionList reads the command's list of sessions.
func (r *request) sessionList() (map[string]bool, error) {
	if r.arg.Kind() != value.Array {
		return nil, merr.New(merr.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type 'array'",
			r.name, r.name, expr.TypeName(r.arg))
	}
	ids := map[string]bool{}
	for it := r.arg.Iter(); it.Next(); {
		if id := it.Value().Get("id"); id.Kind() == value.UUID {
			ids[string(id.Bytes())] = true
		}
	}
	return ids, nil
}

// refreshSessions extends sessions, and so their cursors with noCursorTimeout.
func refreshSessions(r *request, dst []byte) ([]byte, error) {
	ids, err := r.sessionList()
	if err != nil {
		return dst, err
	}
	r.s.cursors.refresh(r.c.user, ids)
	return dst, r.refreshShared(ids)
}

// endSessions removes sessions and their cursors.
func endSessions(r *request, dst []byte) ([]byte, error) {
	ended, err := r.sessionList()
	if err != nil {
		return dst, err
	}
	for id := range ended {
		key := r.sessionKey([]byte(id))
		for _, t := range r.s.sessions.running(func(t *transaction) bool { return t.session == key }) {
			r.s.abort(t)
		}
		r.s.sessions.forget(key)
	}
	if err := r.endShared(ended); err != nil {
		return dst, err
	}
	cs := r.s.cursors
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.m {
		if c.lsid != nil && c.user == r.c.user && ended[string(c.lsid)] {
			cs.remove(c)
		}
	}
	return dst, nil
}

// opened and closed keep the list of transactions that run.
func (ss *sessions) opened(t *transaction) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.open[t] = struct{}{}
	t.of.running++
}

func (ss *sessions) closed(t *transaction) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if _, runs := ss.open[t]; runs {
		delete(ss.open, t)
		t.of.running--
	}
}

// running returns those of the transactions that run.
func (ss *sessions) running(of func(*transaction) bool) (out []*transaction) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for t := range ss.open {
		if of(t) {
			out = append(out, t)
		}
	}
	return out
}
