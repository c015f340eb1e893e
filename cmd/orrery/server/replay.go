package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Replay sends the requests of a record, one after the other, to an account of this server or to another server's NoSQL
// API. Requests are signed with the target's key.

// ReplayReport is what a replay has done.
type ReplayReport struct {
	Requests  int64            `json:"requests"`
	Same      int64            `json:"same"` // with the recorded status
	Different []ReplayedStatus `json:"different,omitempty"`
	More      int64            `json:"differentMore,omitempty"` // that Different omits
}

// ReplayedStatus is a request whose status isn't the recorded one.
type ReplayedStatus struct {
	Request int64  `json:"request"` // its number, from 1
	What    string `json:"what"`
	Want    int    `json:"want"`
	Got     int    `json:"got,omitempty"`
	Error   string `json:"error,omitempty"`
}

// mostDifferent is the number of differences that a report lists.
const mostDifferent = 100

// replayRequest is the body of a replay.
type replayRequest struct {
	Name    string `json:"name"`
	Account string `json:"account"` // of this server; "" = its own
	// Endpoint is the NoSQL endpoint of another server, and Key its key. Only its NoSQL requests are sent there. An
	// endpoint that isn't on this machine is refused unless Remote is set.
	Endpoint string `json:"endpoint"`
	Key      string `json:"key"`
	Remote   bool   `json:"remote"`
}

// target is where a replay goes.
type replayTarget struct {
	s        *Server // signs; with another server's key for an endpoint
	endpoint string  // of the NoSQL API, without the last slash
	only     bool    // NoSQL requests alone
	mongo    *mongoConn
	gremlin  *gremlinConn
}

// Replay sends a record's requests.
func (s *Server) Replay(ctx context.Context, q replayRequest) (*ReplayReport, error) {
	if s.kit == nil {
		return nil, errNoControls
	}
	file, err := s.recordFile(q.Name)
	if err != nil {
		return nil, err
	}
	t, err := s.replayTarget(q)
	if err != nil {
		return nil, err
	}
	defer t.close()
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("record %q: %w", q.Name, errUnknown)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &ReplayReport{}
	for d := json.NewDecoder(bufio.NewReader(f)); d.More() && ctx.Err() == nil; {
		var one Recorded
		if err := d.Decode(&one); err != nil {
			return out, fmt.Errorf("record %q, request %d: %w", q.Name, out.Requests+1, err)
		}
		if t.only && one.API != NoSQL {
			continue
		}
		out.Requests++
		got, err := t.send(ctx, &one)
		if err == nil && got == one.Status {
			out.Same++
			continue
		}
		diff := ReplayedStatus{Request: out.Requests, What: one.API + " " + one.Method + " " + one.Target,
			Want: one.Status, Got: got}
		if err != nil {
			diff.Error = err.Error()
		}
		if len(out.Different) < mostDifferent {
			out.Different = append(out.Different, diff)
		} else {
			out.More++
		}
	}
	return out, ctx.Err()
}

// The errors of a replay's target.
var (
	errEndpoint   = errors.New("want http://HOST:PORT or https://HOST:PORT")
	errRemote     = errors.New(`say "remote": true`)
	errTwoTargets = errors.New("a replay goes to an account or to an endpoint, not to both")
)

// replayTarget finds the target of a replay.
func (s *Server) replayTarget(q replayRequest) (*replayTarget, error) {
	if q.Endpoint == "" {
		s.kit.mu.Lock()
		defer s.kit.mu.Unlock()
		a, err := s.accountNamed(q.Account)
		if err != nil {
			return nil, err
		}
		return &replayTarget{s: a, endpoint: "http://" + a.Addr(NoSQL)}, nil
	}
	if q.Account != "" {
		return nil, errTwoTargets
	}
	u, err := url.Parse(q.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q: %w", q.Endpoint, errEndpoint)
	}
	if !loopback(u.Hostname()) && !q.Remote {
		return nil, fmt.Errorf("endpoint %s isn't on this machine: %w", u.Host, errRemote)
	}
	other := Server{cfg: Config{Account: s.cfg.Account, Key: q.Key, Auth: q.Key != "", Clock: s.cfg.Clock}}
	return &replayTarget{s: &other, endpoint: strings.TrimSuffix(q.Endpoint, "/"), only: true}, nil
}

func (t *replayTarget) close() {
	if t.mongo != nil {
		_ = t.mongo.Close()
	}
	if t.gremlin != nil {
		t.gremlin.close()
	}
}

// send sends one request. got is the status of HTTP, 0 for the other APIs, whose failures are errors.
func (t *replayTarget) send(ctx context.Context, q *Recorded) (got int, err error) {
	switch q.API {
	case NoSQL:
		return t.http(ctx, q, t.endpoint+q.Target, t.signNoSQL)
	case Table:
		return t.http(ctx, q, "http://"+t.s.Addr(Table)+q.Target, t.signTable)
	case Mongo:
		if t.mongo == nil {
			if t.mongo, err = t.s.dialMongo(ctx); err != nil {
				return 0, err
			}
		}
		_, err = t.mongo.run(q.Body)
		return 0, err
	case Gremlin:
		if t.gremlin == nil {
			if t.gremlin, err = t.s.dialGremlin(ctx); err != nil {
				return 0, err
			}
		}
		return 0, t.gremlin.eval(q.Target, q.Body, q.Bindings)
	}
	return 0, fmt.Errorf("an unknown API %q", q.API)
}

// http sends a request of HTTP. It follows no redirect.
func (t *replayTarget) http(ctx context.Context, q *Recorded, target string, sign func(*http.Request)) (int, error) {
	r, err := http.NewRequestWithContext(ctx, q.Method, target, bytes.NewReader(q.bytes()))
	if err != nil {
		return 0, err
	}
	for name, value := range q.Header {
		r.Header.Set(name, value)
	}
	r.Header.Set("X-Ms-Date", wall.Now().Format(http.TimeFormat))
	if t.s.cfg.Auth {
		sign(r)
	}
	c := http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer c.CloseIdleConnections()
	res, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// signNoSQL signs with the master key: over the verb, and the type and the link of the resource in the path.
func (t *replayTarget) signNoSQL(r *http.Request) {
	parts := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' })
	kind, link := "", strings.Join(parts, "/")
	switch n := len(parts); {
	case n == 0:
	case n%2 == 1:
		kind, link = parts[n-1], strings.Join(parts[:n-1], "/")
	default:
		kind = parts[n-2]
	}
	text := strings.ToLower(r.Method) + "\n" + kind + "\n" + link + "\n" + strings.ToLower(r.Header.Get("X-Ms-Date")) +
		"\n\n"
	r.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+t.s.sign(text)))
}

// signTable signs as SharedKeyLite.
func (t *replayTarget) signTable(r *http.Request) {
	text := r.Header.Get("X-Ms-Date") + "\n/" + t.s.cfg.Account + r.URL.EscapedPath()
	if comp := r.URL.Query().Get("comp"); comp != "" {
		text += "?comp=" + comp
	}
	r.Header.Set("Authorization", "SharedKeyLite "+t.s.cfg.Account+":"+t.s.sign(text))
}
