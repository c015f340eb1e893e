package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// Records. A server with test controls can write the requests that its clients send to a file, and send them again to
// an account. A record is a line of JSON for each request, with the status of its reply. It has no credentials: of the
// headers only those that change what a request does, of a URL no signature, and no commands about logins and users. It
// has data, so only its owner can read the file.

// Recorded is one request.
type Recorded struct {
	API    string            `json:"api"`
	Method string            `json:"method,omitempty"` // of HTTP
	Target string            `json:"target,omitempty"` // path and parameters; of Gremlin the graph
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`   // text of HTTP, script, or command in Extended JSON
	Binary []byte            `json:"binary,omitempty"` // instead of Body, if it is no text

	Bindings map[string]any `json:"bindings,omitempty"` // of Gremlin
	Status   int            `json:"status,omitempty"`   // of HTTP
}

// recording writes the requests of all accounts of a server while a record is made.
type recording struct {
	on atomic.Bool // there is a record

	mu   sync.Mutex
	file *os.File
	n    int64
	err  error // of the first failed write
}

// The errors of records.
var (
	errNoRecords = errors.New("records need a directory: start the server with --record-dir DIR")
	errRecording = errors.New("a record is being made")
	errNoRecord  = errors.New("no record is being made")
)

// recordFile returns the file of a record.
func (s *Server) recordFile(name string) (string, error) {
	if !testName.MatchString(name) {
		return "", fmt.Errorf("record %q: %w", name, errName)
	}
	if s.cfg.RecordDir == "" {
		return "", errNoRecords
	}
	return filepath.Join(s.cfg.RecordDir, name+".jsonl"), nil
}

// Record begins a record, in place of an older one of its name.
func (s *Server) Record(name string) error {
	if s.kit == nil {
		return errNoControls
	}
	file, err := s.recordFile(name)
	if err != nil {
		return err
	}
	r := &s.kit.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		return errRecording
	}
	if err := os.MkdirAll(s.cfg.RecordDir, 0o700); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if r.file, err = os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	r.n, r.err = 0, nil
	r.on.Store(true)
	return nil
}

// StopRecord ends the record and returns the number of its requests.
func (s *Server) StopRecord() (int64, error) {
	if s.kit == nil {
		return 0, errNoControls
	}
	r := &s.kit.recorder
	r.on.Store(false)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return 0, errNoRecord
	}
	err := errors.Join(r.err, r.file.Sync(), r.file.Close())
	r.file = nil
	return r.n, err
}

// add writes a request.
func (r *recording) add(q *Recorded) {
	line, err := json.Marshal(q)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return
	}
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	if r.err == nil {
		r.err = err
	}
	r.n++
}

// set sets the body.
func (q *Recorded) set(body []byte) {
	if utf8.Valid(body) {
		q.Body = string(body)
	} else {
		q.Binary = body
	}
}

func (q *Recorded) bytes() []byte {
	if q.Binary != nil {
		return q.Binary
	}
	return []byte(q.Body)
}

// kept reports whether a record has a header. The others are credentials, dates that signatures cover, or the client's
// name.
func kept(name string) bool {
	switch name {
	case "Content-Type", "Accept", "If-Match", "If-None-Match", "If-Modified-Since", "Prefer", "A-Im",
		"Dataserviceversion", "Maxdataserviceversion", "X-Http-Method":
		return true
	case "X-Ms-Date", "X-Ms-Session-Token", "X-Ms-Client-Request-Id":
		return false
	}
	return strings.HasPrefix(name, "X-Ms-")
}

// signed are the parameters of shared access signatures.
var signed = []string{"sv", "sig", "se", "sp", "st", "spr", "sip", "si", "tn", "spk", "srk", "epk", "erk", "ss", "srt"}

// unsigned returns a target without a shared access signature.
func unsigned(u *url.URL) string {
	if !strings.Contains(u.RawQuery, "sig=") {
		return u.RequestURI()
	}
	parts := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(p string) bool {
		name, _, _ := strings.Cut(p, "=")
		return slices.Contains(signed, name)
	})
	out := *u
	out.RawQuery = strings.Join(parts, "&")
	return out.RequestURI()
}

// mostRecorded is the size of the largest body that is recorded, in bytes: the largest that a door takes.
const mostRecorded = 32 << 20

// recorded records the requests of an HTTP API. A path of the Table API may begin with the account's name, which isn't
// recorded.
//
//go:noinline // each caller would get its own copy of the closure
func (r *recording) recorded(api, account string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !r.on.Load() {
			h.ServeHTTP(w, q)
			return
		}
		one := &Recorded{API: api, Method: q.Method, Target: unsigned(q.URL), Header: map[string]string{}}
		if rest, ok := strings.CutPrefix(one.Target, "/"+account+"/"); ok && api == Table {
			one.Target = "/" + rest
		}
		for name, values := range q.Header {
			if kept(name) {
				one.Header[name] = values[0]
			}
		}
		body, err := io.ReadAll(io.LimitReader(q.Body, mostRecorded))
		rest := q.Body
		q.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), &failing{rest, err}), rest}
		one.set(body)
		seen := &codeSeen{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(seen, q)
		one.Status = seen.code
		r.add(one)
	})
}

// failing gives the error of a body after what was read of it.
type failing struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (f *failing) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Reader.Read(p)
}

// codeSeen notes the status of a reply.
type codeSeen struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (s *codeSeen) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find what the connection can do.
func (s *codeSeen) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Hijack implements http.Hijacker.
func (s *codeSeen) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(s.ResponseWriter).Hijack()
}

// Flush implements http.Flusher.
func (s *codeSeen) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// script records a request of Gremlin. Bytecode isn't recorded.
func (r *recording) script(graph string, q *message.Request) {
	if !r.on.Load() || q.Bytecode != nil {
		return
	}
	r.add(&Recorded{API: Gremlin, Target: graph, Body: q.Script, Bindings: q.Bindings})
}

// recordCommands returns mongoapi.Options.Record; nil without test controls.
func (s *Server) recordCommands() func() func([]byte) {
	r := s.recorder()
	if r == nil {
		return nil
	}
	to := func(text []byte) { r.add(&Recorded{API: Mongo, Body: string(text)}) }
	return func() func([]byte) {
		if !r.on.Load() {
			return nil
		}
		return to
	}
}
