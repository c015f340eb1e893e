package mongoapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"strings"
	"sync"

	"github.com/xdg-go/scram"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/users"
)

// credentials are the SCRAM credentials of the account, computed at its first login.
type credentials struct {
	once         sync.Once
	sha1, sha256 scram.StoredCredentials
	err          error
}

func (s *Server) credentials() (*credentials, error) {
	c := &s.creds
	c.once.Do(func() {
		// The salt needn't be secret. It is derived from the account, so it is the same after a restart and clients'
		// caches stay valid.
		salt := sha256.Sum256([]byte("orrery mongo " + s.o.Account))
		from := salt[:users.SaltSize]
		if c.sha1, c.err = users.Derive(users.MechSHA1, s.o.Account, s.o.Key, false, from); c.err == nil {
			c.sha256, c.err = users.Derive(users.MechSHA256, s.o.Account, s.o.Key, false, from)
		}
	})
	return c, c.err
}

// loginAs is who logs in: the account (who is nil), or a user.
type loginAs struct {
	user string // as cursors and sessions are bound to it
	who  *users.Principal
}

// identify finds who logs in with a name and a database, and its credentials. The account is known in every database.
func (r *request) identify(db, name, mechanism string) (id loginAs, c scram.StoredCredentials, err error) {
	if name == r.s.o.Account {
		creds, err := r.s.credentials()
		if err != nil {
			return id, c, err
		}
		id.user, c = name, creds.sha256
		if mechanism == users.MechSHA1 {
			c = creds.sha1
		}
		return id, c, nil
	}
	p, d, err := r.users().Principal(users.Name{User: name, DB: db})
	if err != nil {
		return id, c, err
	}
	if p == nil {
		return id, c, authFailed()
	}
	c, ok := users.ReadCredentials(d, mechanism)
	if !ok {
		return id, c, authFailed()
	}
	return loginAs{p.Name.String(), p}, c, nil
}

// conversation is the state of a SASL login.
//
// Example, SCRAM-SHA-256:
//
//	client  saslStart     n,,n=account,r=<client nonce>
//	server                r=<client nonce><server nonce>,s=<salt>,i=<iterations>
//	client  saslContinue  c=biws,r=<both nonces>,p=<proof>
//	server                v=<server signature>, done; with skipEmptyExchange or after another saslContinue
type conversation struct {
	scram     *scram.ServerConversation
	as        loginAs
	skipEmpty bool
	verified  bool
	count     *loginCount
	early     bool // begun by hello
}

func authFailed() error { return merr.New(merr.AuthenticationFailed, "Authentication failed.") }

func saslStart(r *request, dst []byte) ([]byte, error) { return r.saslStart(dst, r.body, r.db) }

// saslStart begins a login with its arguments in given, in a database. hello may contain them too (speculative
// authentication).
func (r *request) saslStart(dst []byte, given value.Value, db string) ([]byte, error) {
	r.c.sasl = nil
	var gen scram.HashGeneratorFcn
	mechanism := given.Get("mechanism").Str()
	count, early := r.s.counters.login(mechanism), !strings.HasPrefix(r.name, "sasl")
	count.begin(early)
	switch mechanism {
	case users.MechSHA256:
		gen = scram.SHA256
	case users.MechSHA1:
		gen = scram.SHA1
	case users.MechPlain:
		dst, err := r.plain(dst, db, given.Get("payload").Bytes())
		if err == nil {
			count.end(early)
		}
		return dst, err
	default:
		return dst, merr.New(merr.MechanismUnavailable, "Received authentication for mechanism %s which is not enabled",
			mechanism)
	}
	conv := &conversation{count: count, early: early, skipEmpty: given.Get("options").Get("skipEmptyExchange").Bool()}
	srv, err := gen.NewServer(func(user string) (scram.StoredCredentials, error) {
		as, stored, err := r.identify(db, user, mechanism)
		conv.as = as
		return stored, err
	})
	if err != nil {
		return dst, err
	}
	conv.scram = srv.NewConversation()
	out, err := conv.scram.Step(string(given.Get("payload").Bytes()))
	if err != nil {
		return dst, authFailed()
	}
	r.c.sasl = conv
	return appendSASL(dst, out, false), nil
}

// plain is a login with the password itself: "authorization NUL user NUL password". It is only for connections that
// others can't read.
func (r *request) plain(dst []byte, db string, payload []byte) ([]byte, error) {
	if _, secure := r.c.nc.(*tls.Conn); !secure && !r.s.o.PlainText {
		return dst, merr.New(merr.MechanismUnavailable,
			"Received authentication for mechanism PLAIN which is not enabled "+
				"without TLS")
	}
	if db == externalDB || db == "" { // what drivers say for this mechanism, unless authSource says more
		db = users.DB
	}
	parts := bytes.Split(payload, []byte{0})
	if len(parts) != 3 || len(parts[0]) > 0 && !bytes.Equal(parts[0], parts[1]) {
		return dst, authFailed()
	}
	user, password := string(parts[1]), string(parts[2])
	mechanism := users.MechSHA256
	as, c, err := r.identify(db, user, mechanism)
	if err != nil {
		mechanism = users.MechSHA1
		if as, c, err = r.identify(db, user, mechanism); err != nil {
			return dst, err
		}
	}
	got, err := users.Derive(mechanism, user, password, false, []byte(c.Salt))
	if err != nil || c.Iters != got.Iters || subtle.ConstantTimeCompare(got.StoredKey, c.StoredKey) != 1 {
		return dst, authFailed()
	}
	r.c.login(as)
	return appendSASL(dst, "", true), nil
}

// login makes the connection that of a user or of the account.
func (c *conn) login(as loginAs) {
	c.sasl, c.authed, c.user, c.who = nil, true, as.user, as.who
}

func appendSASL(dst []byte, payload string, done bool) []byte {
	dst = bson.AppendInt32(dst, "conversationId", 1)
	dst = bson.AppendBool(dst, "done", done)
	return bson.AppendBinary(dst, "payload", []byte(payload))
}

func saslContinue(r *request, dst []byte) ([]byte, error) {
	conv := r.c.sasl
	if conv == nil || r.body.Get("conversationId").Int() != 1 {
		return dst, merr.New(merr.ProtocolError, "No SASL session state found")
	}
	if conv.verified { // the exchange at the end: empty by most drivers, but Java's 3.x repeats the server's signature
		r.c.login(conv.as)
		return appendSASL(dst, "", true), nil
	}
	out, err := conv.scram.Step(string(r.body.Get("payload").Bytes()))
	if err != nil || !conv.scram.Valid() {
		r.c.sasl = nil
		return dst, authFailed()
	}
	conv.count.end(conv.early)
	if !conv.skipEmpty {
		conv.verified = true
		return appendSASL(dst, out, false), nil
	}
	r.c.login(conv.as)
	return appendSASL(dst, out, true), nil
}

func logout(r *request, dst []byte) ([]byte, error) {
	r.c.authed, r.c.user, r.c.who, r.c.sasl = !r.s.o.Auth, "", nil, nil
	return dst, nil
}

// mechanisms returns those with which a user ("db.name") may log in. Who doesn't exist has all of them, so that nobody
// learns who does.
func (r *request) mechanisms(user string) ([]string, error) {
	all := []string{users.MechSHA256, users.MechSHA1}
	db, name, ok := strings.Cut(user, ".")
	if !ok || name == r.s.o.Account {
		return all, nil
	}
	p, d, err := r.users().Principal(users.Name{User: name, DB: db})
	if p == nil || err != nil {
		return all, err
	}
	var have []string
	for _, m := range all {
		if _, ok := users.ReadCredentials(d, m); ok {
			have = append(have, m)
		}
	}
	return have, nil
}
