package explorer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

// Access is what a session may do.
type Access int

const (
	None  Access = iota // there is no session
	Reads               // read-only
	Writes
)

const (
	sessionIdle = 12 * time.Hour // a session that is not used as long ends
	maxSessions = 1000           // more end the one that wasn't used for longest
	tokenHeader = "X-Orrery-Token"
)

// Sessions are the log-ins of the page. A session is a cookie, which is a random id, and a token, which the page sends
// in a header. Both are needed. Neither is derived from a key. Only hashes are kept. Safe for concurrent use.
type Sessions struct {
	clock *clock.Clock
	mu    sync.Mutex
	all   map[[32]byte]*session // by the hash of cookie and token
}

type session struct {
	cookie [32]byte // its hash
	access Access
	used   time.Time
}

// NewSessions makes an empty set.
func NewSessions(c *clock.Clock) *Sessions {
	return &Sessions{clock: c, all: map[[32]byte]*session{}}
}

// cookieName is the name of the cookie: browsers send the cookies of all ports of a host to each of them, so each port
// has its own.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "orrery-" + port
	}
	return "orrery"
}

func hashOf(cookie, token string) [32]byte { return sha256.Sum256([]byte(cookie + "\x00" + token)) }

// credentials returns the cookie and the token of a request.
func credentials(r *http.Request) (cookie, token string) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		cookie = c.Value
	}
	return cookie, r.Header.Get(tokenHeader)
}

// access returns what the session of a request may do.
func (s *Sessions) access(r *http.Request) Access {
	cookie, token := credentials(r)
	if cookie == "" || token == "" {
		return None
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := hashOf(cookie, token)
	is := s.all[h]
	now := s.clock.Now()
	if is == nil {
		return None
	}
	if now.Sub(is.used) > sessionIdle {
		delete(s.all, h)
		return None
	}
	is.used = now
	return is.access
}

// open begins a session.
func (s *Sessions) open(cookie, token string, a Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	var oldest [32]byte
	for h, is := range s.all {
		if now.Sub(is.used) > sessionIdle {
			delete(s.all, h)
		} else if first := s.all[oldest]; first == nil || is.used.Before(first.used) {
			oldest = h
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, oldest)
	}
	s.all[hashOf(cookie, token)] = &session{sha256.Sum256([]byte(cookie)), a, now}
}

// knows reports whether a session has this cookie. Then another tab of the browser may share it.
func (s *Sessions) knows(cookie string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := sha256.Sum256([]byte(cookie))
	for _, is := range s.all {
		if is.cookie == h {
			return true
		}
	}
	return false
}

func (s *Sessions) end(cookie, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, hashOf(cookie, token))
}

func (s *Sessions) random() string {
	var b [24]byte
	s.clock.Random(b[:])
	return hex.EncodeToString(b[:])
}

// Welcome is the reply to a log-in.
type Welcome struct {
	Token    string   `json:"token,omitempty"`
	Auth     bool     `json:"auth"`
	ReadOnly bool     `json:"readOnly"`
	Account  string   `json:"account"`
	Version  string   `json:"version"`
	APIs     []string `json:"apis"`
	// Key is the account's key if everybody knows it, so that the page can offer it.
	Key     string `json:"publicKey,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// logIn begins a session, or continues the one whose cookie and token the request has. Where the doors ask for
// credentials, the body has a key: {"key": ".."}.
func (e *Explorer) logIn(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Key string `json:"key"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<10))
	if err != nil || len(body) == 0 || json.Unmarshal(body, &ask) != nil {
		(&refused{http.StatusBadRequest, "BadLogIn", `Send {} or {"key": ".."}.`}).write(w)
		return
	}
	hello := e.welcome()
	access := e.sessions.access(r)
	if access != None && ask.Key == "" {
		_, hello.Token = credentials(r)
		hello.ReadOnly = hello.ReadOnly || access == Reads
		writeJSON(w, http.StatusOK, hello)
		return
	}
	if access = e.accessOf(ask.Key); access != None && ask.Key != "" && e.o.Auth && overheard(r) {
		(&refused{http.StatusForbidden, "PlainHTTP", "Others on the network could read the key: open the page with " +
			"https."}).write(w)
		return
	}
	if access == None {
		hello.Code, hello.Message = "LogIn", "The account's key is needed."
		if ask.Key != "" {
			hello.Code, hello.Message = "WrongKey", "This is not a key of the account."
		}
		writeJSON(w, http.StatusUnauthorized, hello)
		return
	}
	cookie, _ := credentials(r)
	if !e.sessions.knows(cookie) {
		cookie = e.sessions.random()
	}
	hello.Token = e.sessions.random()
	hello.ReadOnly = hello.ReadOnly || access == Reads
	e.sessions.open(cookie, hello.Token, access)
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: cookie, Path: Prefix, HttpOnly: true,
		Secure: scheme(r) == "https", SameSite: http.SameSiteStrictMode})
	writeJSON(w, http.StatusOK, hello)
}

func (e *Explorer) welcome() *Welcome {
	hello := &Welcome{Auth: e.o.Auth, ReadOnly: e.o.Mode == ReadOnly, Account: e.o.Account, Version: e.o.Version,
		APIs: []string{}}
	if e.o.Public {
		hello.Key = e.o.Key
	}
	for _, d := range []struct {
		name string
		on   bool
	}{{"nosql", e.o.NoSQL != nil}, {"table", e.o.Table != nil}, {"gremlin", e.o.Gremlin != nil},
		{"mongo", e.o.Mongo != nil}, {"admin", e.o.Admin != nil}} {
		if d.on {
			hello.APIs = append(hello.APIs, d.name)
		}
	}
	return hello
}

// accessOf returns what a key allows.
func (e *Explorer) accessOf(key string) Access {
	switch {
	case !e.o.Auth:
		return Writes
	case key == "":
		return None
	case subtle.ConstantTimeCompare([]byte(key), []byte(e.o.Key)) == 1:
		return Writes
	case e.o.ReadKey != "" && subtle.ConstantTimeCompare([]byte(key), []byte(e.o.ReadKey)) == 1:
		return Reads
	}
	return None
}

func (e *Explorer) logOut(w http.ResponseWriter, r *http.Request) {
	e.sessions.end(credentials(r))
	w.WriteHeader(http.StatusNoContent)
}
