package graphapi

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// login is the state of a connection's login. The first request is answered with a challenge and kept. The client
// answers with an authentication message, which may have another id. The result of the login has the id of the
// challenged request, because clients know no other.
//
//	client  eval            id A  g.V().count()
//	server  407 challenge   id A
//	client  authentication  id B  SASL PLAIN "\0account\0key"
//	server  200             id A  the result of g.V().count(); 401 if the key is wrong
type login struct {
	done      bool
	service   bool // logged in as /dbs/<database>/colls/<graph>: gets replies in the service's flavour
	graph     GraphName
	kept      []*work // requests that wait for the login, the challenged one first
	keptBytes int
	attempts  int
}

const challenge = "Graph Service requires Gremlin Client to provide SASL Authentication."

// admit passes a request on if the client has logged in; otherwise it challenges the client or keeps the request.
func (c *conn) admit(w *work) {
	l := &c.login
	switch {
	case l.done && w.req.Op == "authentication":
		w.reply.fail(fail(kindArguments, "this connection needs no authentication"))
	case l.done:
		c.dispatch(w)
	case w.req.Op == "authentication" && len(l.kept) > 0:
		c.authenticate(w)
	case w.req.Op == "authentication":
		// Authentication without a challenge: the result has its own id.
		l.kept = []*work{w}
		c.authenticate(w)
	default:
		l.keptBytes += w.size
		if len(l.kept) >= maxPending || l.keptBytes > maxLoginBytes {
			w.reply.fail(&failure{kind: kindBusy})
			return
		}
		l.kept = append(l.kept, w)
		if len(l.kept) == 1 {
			c.challenged.Store(true)
			w.challenge()
		}
	}
}

// challenge asks for a login. The flavour isn't known yet. For the mime type of GraphSON 2, the challenge is written as
// the service writes it; typed readers can read that too.
func (w *work) challenge() {
	r := *w.reply
	r.codec = w.ser.answer(true)
	r.send(&message.Response{ID: r.id, Code: message.Authenticate, Message: challenge, NullData: true,
		Attributes: []message.Attribute{{Key: "x-ms-status-code", Value: int32(message.Authenticate)}}}, nil, 0)
}

// authenticate checks a login. On success the kept requests run. On failure they fail, and after several attempts the
// connection is closed.
func (c *conn) authenticate(w *work) {
	l := &c.login
	c.challenged.Store(false)
	first := l.kept[0]
	seen := c.srv.observe("authentication", c.client)
	if err := c.checkLogin(w); err != nil {
		first.reply.seen = seen
		for _, k := range l.kept {
			k.reply.service = l.service
			k.reply.fail(failureOf(err))
		}
		l.kept, l.keptBytes, l.service, l.graph = nil, 0, false, GraphName{}
		if l.attempts++; l.attempts >= maxLoginAttempts {
			c.close(websocket.ClosePolicyViolation, "too many failed logins")
		}
		return
	}
	(&reply{c: c, seen: seen}).ended(message.Success)
	l.done = true
	kept := l.kept
	l.kept, l.keptBytes = nil, 0
	for _, k := range kept {
		k.reply.service = l.service
		k.reply.codec = k.ser.answer(l.service)
		if k.req.Op == "authentication" {
			k.reply.send(&message.Response{
				ID: k.reply.id, Code: message.Success,
				Attributes: k.reply.attributes(message.Success, c.srv.o.Clock.UUID())}, nil, 0)
			continue
		}
		c.dispatch(k)
	}
}

// checkLogin checks SASL PLAIN: authorization id, zero byte, user, zero byte, password.
func (c *conn) checkLogin(w *work) error {
	if m, ok := w.req.String("saslMechanism"); ok && !strings.EqualFold(m, "PLAIN") {
		return fail(kindBadLogin, "SASL mechanism %.20q is not supported; use PLAIN", m)
	}
	proof, err := saslBytes(w.req)
	if err != nil {
		return err
	}
	parts := strings.Split(string(proof), "\x00")
	if len(parts) != 3 {
		return &failure{kind: kindBadLogin}
	}
	return c.login.check(c.ctx, c.srv, parts[1], parts[2])
}

// check checks user and password. The user is the account or names an existing graph.
func (l *login) check(ctx context.Context, s *Server, user, password string) error {
	graph, named := parseGraphUser(user)
	l.service = named
	if !sameSecret(password, s.o.Key) || !named && !sameSecret(user, s.o.Account) {
		return &failure{kind: kindBadLogin}
	}
	if !named {
		return nil
	}
	if _, err := s.open.OpenGraph(ctx, graph, graph == defaultGraph); err != nil {
		if status.Is(err, status.NotFound) {
			return &failure{kind: kindOwnerNotFound}
		}
		return err
	}
	l.graph = graph
	return nil
}

// saslBytes returns the argument with user and password. Clients of before TinkerPop's own for Node, gremlin 2 and
// gremlin-secure, write its name in capitals. The latter doesn't encode it.
func saslBytes(r *message.Request) ([]byte, error) {
	v, ok := r.Args.GetString("sasl")
	if !ok {
		v, _ = r.Args.GetString("SASL")
	}
	if b, ok := v.([]byte); ok && len(b) <= maxSASLBytes {
		return b, nil
	}
	s, ok := v.(string)
	if !ok || len(s) > maxSASLBytes {
		return nil, fail(kindArguments, "an authentication message needs the argument sasl, a base64 text")
	}
	if strings.HasPrefix(s, "\x00") { // no character of base64
		return []byte(s), nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		b, err = base64.RawStdEncoding.DecodeString(s)
	}
	if err != nil {
		return nil, fail(kindArguments, "the argument sasl is not base64")
	}
	return b, nil
}

// parseGraphUser reads /dbs/<database>/colls/<graph>, with or without the first slash.
func parseGraphUser(user string) (GraphName, bool) {
	parts := strings.Split(strings.Trim(user, "/"), "/")
	if len(parts) != 4 || parts[0] != "dbs" || parts[2] != "colls" || parts[1] == "" || parts[3] == "" {
		return GraphName{}, false
	}
	return GraphName{parts[1], parts[3]}, true
}

// nameOf resolves a traversal source to the name of a graph: a configured name, g, or a graph's name as
// <database>/<graph> or in the form of a login. create says that a missing graph is created.
func (s *Server) nameOf(l *login, source string) (name GraphName, create bool, err error) {
	switch n, ok := s.o.Sources[source]; {
	case ok:
		return n, true, nil
	case source == "g" && l.graph != (GraphName{}):
		return l.graph, l.graph == defaultGraph, nil
	case source == "g":
		return defaultGraph, true, nil
	}
	name, ok := parseGraphUser(source)
	if !ok {
		db, graph, found := strings.Cut(source, "/")
		name, ok = GraphName{db, graph}, found && db != "" && graph != "" && !strings.Contains(graph, "/")
	}
	if !ok {
		return name, false, fail(kindArguments,
			"Could not alias [g] to [%.100s] as [%.100s] not in the Graph or TraversalSource global bindings",
			source, source)
	}
	return name, false, nil
}

// graphOf opens the graph of a traversal source, and records its name in seen, which may be nil.
func (s *Server) graphOf(ctx context.Context, l *login, source string, seen *observed) (Graph, error) {
	name, create, err := s.nameOf(l, source)
	if err != nil {
		return nil, err
	}
	seen.about(name)
	g, err := s.open.OpenGraph(ctx, name, create)
	if status.Is(err, status.NotFound) {
		return nil, &failure{kind: kindOwnerNotFound}
	}
	return g, err
}
