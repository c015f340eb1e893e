package mongoapi

import (
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

const (
	sessionMinutes = 30
	// maxSessions bounds the sessions of which the last write is remembered, maxReplies the bytes of all their replies.
	maxSessions = 100_000
	maxReplies  = 32 << 20
)

// sessions remember, for each session that wrote with a transaction number, the reply to its last write: a driver that
// didn't see the reply sends the same command again and gets it. They live in memory: after a restart a repeated write
// is a new one.
type sessions struct {
	clk  *clock.Clock
	mu   sync.Mutex
	m    map[[16]byte]*session
	size int // of the replies
}

type session struct {
	mu    sync.Mutex // held while the write runs, so that a repeat waits for it
	txn   int64
	reply []byte // the whole reply document
	used  time.Time
	size  int // of reply as it is counted; written under this lock and that of all sessions
	key   [16]byte
}

func newSessions(clk *clock.Clock) *sessions { return &sessions{clk: clk, m: map[[16]byte]*session{}} }

func key16(b []byte) (k [16]byte) {
	copy(k[:], b)
	return k
}

func (ss *sessions) get(id value.Value) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	k := key16(id.Bytes())
	s := ss.m[k]
	if s == nil {
		if len(ss.m) >= maxSessions {
			ss.drop(nil)
		}
		s = &session{txn: -1, key: k}
		ss.m[k] = s
	}
	s.used = ss.clk.Now()
	return s
}

// drop forgets any one session but this: they are all equally forgotten at a restart. The lock is held.
func (ss *sessions) drop(but *session) {
	for _, s := range ss.m {
		if s != but {
			ss.remove(s)
			return
		}
	}
}

// remove forgets a session; the lock is held.
func (ss *sessions) remove(s *session) {
	if ss.m[s.key] == s {
		delete(ss.m, s.key)
		ss.size -= s.size
	}
}

// count counts the bytes of a session's new reply, and forgets sessions when they are too many.
func (ss *sessions) count(s *session, n int) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.m[s.key] != s {
		return
	}
	ss.size += n - s.size
	s.size = n
	for ss.size > maxReplies && len(ss.m) > 1 {
		ss.drop(s)
	}
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

func (ss *sessions) forget(id [16]byte) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.m[id]; s != nil {
		ss.remove(s)
	}
}

// once runs a retryable write, or gives the reply that it had before.
func (r *request) once(dst []byte, def command) ([]byte, error) {
	s := r.s.sessions.get(r.lsid)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.txn < s.txn:
		return dst, merr.New(merr.TransactionTooOld, "Cannot start transaction %d on session %x because a newer "+
			"transaction %d has already started", r.txn, r.lsid.Bytes(), s.txn)
	case r.txn == s.txn && s.reply != nil:
		return append(dst, s.reply...), nil
	}
	at := len(dst)
	out, err := r.call(dst, def)
	if s.txn = r.txn; err != nil {
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
		return nil, merr.New(merr.TypeMismatch, "BSON field '%s' must be an array", r.name)
	}
	ids := map[string]bool{}
	for it := r.arg.Iter(); it.Next(); {
		if id := it.Value().Get("id"); id.Kind() == value.UUID {
			ids[string(id.Bytes())] = true
		}
	}
	return ids, nil
}

// refreshSessions keeps sessions alive, and so their cursors with noCursorTimeout.
func refreshSessions(r *request, dst []byte) ([]byte, error) {
	ids, err := r.sessionList()
	if err == nil {
		r.s.cursors.refresh(r.c.user, ids)
	}
	return dst, err
}

// endSessions forgets sessions and their cursors.
func endSessions(r *request, dst []byte) ([]byte, error) {
	ended, err := r.sessionList()
	if err != nil {
		return dst, err
	}
	for id := range ended {
		r.s.sessions.forget(key16([]byte(id)))
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

func noTransaction(r *request, dst []byte) ([]byte, error) {
	e := merr.New(merr.NoSuchTransaction, "Given transaction number does not match any in-progress transactions.")
	return dst, e
}
