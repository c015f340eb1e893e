// Package explorer is the web page of the server: a browser's view of databases, containers, items, queries and
// requests. It has the page's files, and a bridge over which the page sends requests to the four doors.
//
// The page has no API of its own. The path of a request of the page names a door and the request for it:
//
//	GET  /_explorer/api/nosql/dbs/shop/colls/products/docs/tent-2   the NoSQL API's GET /dbs/shop/..
//	GET  /_explorer/api/table/devicelog()                           the Table API's GET /devicelog()
//	POST /_explorer/api/gremlin                                     the Gremlin API's POST of a script
//	POST /_explorer/api/mongo/shop                                  a MongoDB command, in Extended JSON
//	GET  /_explorer/api/admin/status                                the admin port's GET /status
//
// The bridge adds the credentials and calls the door's own handler, so a request of the page is limited, charged,
// counted and logged like one of an SDK, and gets the same reply, byte by byte. The bytes of a MongoDB command and of
// its reply are Extended JSON here and BSON there.
//
// Everything is below one prefix and all URLs of the page are relative, so that it works behind any port mapping and
// host name. Guard (guard.go) refuses requests of other pages; sessions (session.go) hold who has logged in.
package explorer

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/orrerydb/orrery/core/clock"
)

// Prefix is the path below which everything of the page is.
const Prefix = "/_explorer/"

// Mode says what the page may do.
type Mode int

const (
	Off      Mode = iota // there is no page
	ReadOnly             // the page can't change anything
	Full                 // the page can do what its key allows
)

// MongoConn is a connection to the MongoDB door, after the log-in.
type MongoConn interface {
	// Exchange sends a command and returns the reply, both BSON. The reply is valid until the next call.
	Exchange(command []byte) (reply []byte, err error)
	Close() error
}

// Options are the settings of a page.
type Options struct {
	Mode    Mode
	Auth    bool   // the doors ask for credentials, so the page does
	Account string // the account's name
	Key     string // the account's key, in base64
	ReadKey string // a second key, with which the page is read-only; "" = none
	Public  bool   // Key is known to everybody
	Version string

	// Names are the host names under which a browser may ask for the page; nil = any. Addresses are always allowed.
	Names func(host string) bool

	// The handlers of the doors, nil where a door is off.
	NoSQL, Table, Gremlin, Admin http.Handler
	Mongo                        func(context.Context) (MongoConn, error)

	Clock *clock.Clock // wall clock, for dates of signatures and the age of sessions
}

// Explorer serves the page on one listener. Safe for concurrent use.
type Explorer struct {
	o        Options
	sessions *Sessions
	pool     mongoPool
}

// New makes the page of one listener. Pages of several listeners may share their sessions.
func New(o Options, s *Sessions) *Explorer {
	e := &Explorer{o: o, sessions: s}
	e.pool.dial = o.Mongo
	return e
}

// Close closes the connections of the page.
func (e *Explorer) Close() { e.pool.close() }

//go:embed web/*.js web/*.css web/*.html web/*.svg web/draw web/lang web/panes web/parts
var web embed.FS

// file is one file of the page.
type file struct {
	text []byte
	kind string // content type
	tag  string // its etag
}

// indents are the tabs at the beginning of lines, and comments are those of JavaScript that have lines of their own.
// They are for readers of the source; browsers get the page without.
var (
	indents  = regexp.MustCompile(`(?m)^\t+`)
	comments = regexp.MustCompile(`(?m)^(?://.*|/\*\*[^*]*(?:\*+[^*/][^*]*)*\*+/)\n`)
)

// files are the files of the page by their path below Prefix.
var files = func() map[string]*file {
	out := map[string]*file{}
	err := fs.WalkDir(web, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := web.ReadFile(name)
		if ext := path.Ext(name); ext == ".js" || ext == ".css" {
			text = indents.ReplaceAll(text, nil)
			if ext == ".js" {
				text = comments.ReplaceAll(text, nil)
			}
		}
		sum := sha256.Sum256(text)
		kind := mime.TypeByExtension(path.Ext(name))
		switch path.Ext(name) { // the system's table may say something else
		case ".js":
			kind = "text/javascript; charset=utf-8"
		case ".css":
			kind = "text/css; charset=utf-8"
		case ".html":
			kind = "text/html; charset=utf-8"
		case ".svg":
			kind = "image/svg+xml"
		case ".txt":
			kind = "text/plain; charset=utf-8"
		}
		out[strings.TrimPrefix(name, "web/")] = &file{text, kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
		return err
	})
	if err != nil {
		panic(err) // an embedded file can be read
	}
	return out
}()

// Handles reports whether a request is for the page.
func Handles(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, Prefix) }

// ServeHTTP implements http.Handler. The request is one that Handles.
func (e *Explorer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if e.o.Mode == Off {
		http.Error(w, "The web page is off here: start the server with --explorer on or --explorer read-only.",
			http.StatusNotFound)
		return
	}
	if why := e.refusal(r); why != nil {
		why.write(w)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	if api, ok := strings.CutPrefix(name, "api/"); ok {
		e.serveAPI(w, r, api)
		return
	}
	if name == "" {
		w.Header().Set("Location", "index.html")
		w.WriteHeader(http.StatusFound)
		return
	}
	f := files[name]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "A file of the page can only be read.", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Etag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.kind)
	if r.Method == http.MethodGet {
		_, _ = w.Write(f.text)
	}
}

// serveAPI answers a request of the page. api is the path below Prefix + "api/".
func (e *Explorer) serveAPI(w http.ResponseWriter, r *http.Request, api string) {
	w.Header().Set("Cache-Control", "no-store")
	if api == "session" || api == "session/end" {
		if r.Method != http.MethodPost {
			(&refused{http.StatusMethodNotAllowed, "MethodNotAllowed", "A log-in is a POST."}).write(w)
			return
		}
		if api == "session" {
			e.logIn(w, r)
		} else {
			e.logOut(w, r)
		}
		return
	}
	access := e.sessions.access(r)
	if access == None {
		(&refused{http.StatusUnauthorized, "LogIn", "Log in first."}).write(w)
		return
	}
	if e.o.Mode == ReadOnly {
		access = Reads
	}
	door, rest, _ := strings.Cut(api, "/")
	e.bridge(w, r, door, rest, access)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}
