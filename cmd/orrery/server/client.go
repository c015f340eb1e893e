package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/gorilla/websocket"
	doors "github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	mongowire "github.com/orrerydb/orrery/mongoapi/wire"
	"github.com/xdg-go/scram"
)

// Minimal clients for each protocol, with credentials. Readiness probes and sample data use them.

// sign returns the HMAC-SHA256 of text under the account key, in base64.
func (s *Server) sign(text string) string {
	key, _ := base64.StdEncoding.DecodeString(s.cfg.Key) // Validate has checked it
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// request sends an HTTP request. A status of 300 or above is an error.
func request(ctx context.Context, method, url string, header map[string]string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := doors.Client(0).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, url, res.Status, text)
	}
	return err
}

// postAdmin sends a POST with the key to an admin port. The caller closes the body of the reply.
func postAdmin(ctx context.Context, admin, path, key string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(admin, "/")+path,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	return doors.Client(0).Do(req)
}

// nosql sends a NoSQL request. link is the parent's link for POST and otherwise the resource's own link ("" for /dbs
// itself).
func (s *Server) nosql(ctx context.Context, method, kind, link string, header map[string]string, body []byte) error {
	date := wall.Now().Format(http.TimeFormat)
	h := map[string]string{"x-ms-date": date, "x-ms-version": "2018-12-31", "Content-Type": "application/json"}
	for k, v := range header {
		h[k] = v
	}
	if s.cfg.Auth {
		text := strings.ToLower(method) + "\n" + kind + "\n" + link + "\n" + strings.ToLower(date) + "\n\n"
		h["Authorization"] = url.QueryEscape("type=master&ver=1.0&sig=" + s.sign(text))
	}
	path := "/" + kind
	if link != "" {
		path = "/" + link + path
	}
	return request(ctx, method, "http://"+s.Addr(NoSQL)+path, h, body)
}

// table sends a Table request to path, such as "/Tables".
func (s *Server) table(ctx context.Context, method, path string, body []byte) error {
	date := wall.Now().Format(http.TimeFormat)
	h := map[string]string{"x-ms-date": date, "x-ms-version": "2019-02-02",
		"Accept":       "application/json;odata=nometadata",
		"Content-Type": "application/json", "Prefer": "return-no-content", "DataServiceVersion": "3.0"}
	if s.cfg.Auth {
		h["Authorization"] = "SharedKeyLite " + s.cfg.Account + ":" + s.sign(date+"\n/"+s.cfg.Account+path)
	}
	return request(ctx, method, "http://"+s.Addr(Table)+path, h, body)
}

// gremlinConn is a WebSocket connection that logs in when the server requests it.
type gremlinConn struct {
	s  *Server
	ws *websocket.Conn
}

func (s *Server) dialGremlin(ctx context.Context) (*gremlinConn, error) {
	ws, _, err := websocket.DefaultDialer.DialContext(ctx, "ws://"+s.Addr(Gremlin)+"/gremlin", nil)
	if err != nil {
		return nil, err
	}
	if d, ok := ctx.Deadline(); ok {
		_ = ws.SetReadDeadline(d)
		_ = ws.SetWriteDeadline(d)
	}
	return &gremlinConn{s, ws}, nil
}

func (c *gremlinConn) close() { _ = c.ws.Close() }

func (c *gremlinConn) send(id, op string, args map[string]any) error {
	const mime = "application/vnd.gremlin-v2.0+json"
	body, err := json.Marshal(map[string]any{"requestId": map[string]any{"@type": "g:UUID", "@value": id},
		"op": op, "processor": "", "args": args})
	if err != nil {
		return err
	}
	return c.ws.WriteMessage(websocket.BinaryMessage, append(append([]byte{byte(len(mime))}, mime...), body...))
}

// eval runs a script on a graph ("database/graph") and reads the complete reply.
func (c *gremlinConn) eval(graph, script string, bindings map[string]any) error {
	if bindings == nil {
		bindings = map[string]any{}
	}
	id := c.s.cfg.Clock.UUID().String()
	err := c.send(id, "eval", map[string]any{"gremlin": script, "language": "gremlin-groovy", "bindings": bindings})
	for err == nil {
		var raw []byte
		if _, raw, err = c.ws.ReadMessage(); err != nil {
			return err
		}
		var res struct {
			Status struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(raw, &res); err != nil {
			return fmt.Errorf("gremlin response: %w", err)
		}
		switch res.Status.Code {
		case 200, 204:
			return nil
		case 206: // more follows
		case 407:
			db, g, _ := strings.Cut(graph, "/")
			login := "\x00/dbs/" + db + "/colls/" + g + "\x00" + c.s.cfg.Key
			err = c.send(id, "authentication", map[string]any{"sasl": base64.StdEncoding.EncodeToString([]byte(login))})
		default:
			return fmt.Errorf("gremlin status %d: %s", res.Status.Code, res.Status.Message)
		}
	}
	return err
}

// mongoConn is an authenticated connection.
type mongoConn struct{ net.Conn }

func (s *Server) dialMongo(ctx context.Context) (*mongoConn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", s.Addr(Mongo))
	if err != nil {
		return nil, err
	}
	if t, ok := ctx.Deadline(); ok {
		_ = nc.SetDeadline(t)
	}
	c := &mongoConn{nc}
	if _, err = c.run(`{"hello":1,"$db":"admin"}`); err == nil && s.cfg.Auth {
		err = c.login(s.cfg.mongoLogin())
	}
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return c, nil
}

func (c *mongoConn) login(user, password string) error {
	client, err := scram.SHA256.NewClient(user, password, "")
	if err != nil {
		return err
	}
	conv := client.NewConversation()
	step, err := conv.Step("")
	if err != nil {
		return err
	}
	payload := func() string { return base64.StdEncoding.EncodeToString([]byte(step)) }
	reply, err := c.run(`{"saslStart":1,"mechanism":"SCRAM-SHA-256","payload":{"$binary":{"base64":"` + payload() +
		`","subType":"00"}},"$db":"admin"}`)
	for range 3 {
		if err != nil {
			return err
		}
		if done := doc.Get(reply, "done"); done.Kind() == value.Bool && done.Bool() {
			return nil
		}
		if step, err = conv.Step(string(doc.Get(reply, "payload").Bytes())); err != nil {
			return err
		}
		reply, err = c.run(fmt.Sprintf(`{"saslContinue":1,"conversationId":%d,"payload":{"$binary":{"base64":%q,`+
			`"subType":"00"}},"$db":"admin"}`,
			doc.Get(reply, "conversationId").Int(), payload()))
	}
	return errors.Join(err, errors.New("mongo: the login takes too many steps"))
}

// run sends one command in Extended JSON and returns the document of the reply. A reply with write errors or with ok
// other than 1 is an error.
func (c *mongoConn) run(extJSON string) (doc.Doc, error) {
	body, err := doc.FromExtJSON(nil, []byte(extJSON))
	if err != nil {
		return nil, err
	}
	raw, err := c.Exchange(body)
	if err != nil {
		return nil, err
	}
	reply := doc.Doc(raw)
	if doc.Get(reply, "ok").Float() != 1 || doc.Get(reply, "writeErrors").IsDefined() {
		return nil, fmt.Errorf("mongo: %.300s", doc.AppendJSON(nil, doc.Value(reply)))
	}
	return reply, nil
}

// Exchange implements explorer.MongoConn: it sends a command as an OP_MSG and returns the document of the reply.
func (c *mongoConn) Exchange(command []byte) (reply []byte, err error) {
	const maxReply = 48 << 20
	msg := append(mongowire.BeginMsg(nil, 1, 0, 0), command...)
	mongowire.EndMsg(msg, 0)
	if _, err := c.Write(msg); err != nil {
		return nil, err
	}
	var head [mongowire.HeaderSize]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	h, err := mongowire.ParseHeader(head[:], maxReply)
	if err != nil || h.OpCode != mongowire.OpMsg {
		return nil, fmt.Errorf("mongo: not an OP_MSG reply of a sane size: % x", head)
	}
	msg = append(head[:], make([]byte, h.Length-mongowire.HeaderSize)...)
	if _, err := io.ReadFull(c, msg[mongowire.HeaderSize:]); err != nil {
		return nil, err
	}
	var m mongowire.Msg
	if err := mongowire.ParseMsg(msg, &m); err != nil {
		return nil, err
	}
	return m.Body, doc.Validate(m.Body, 0)
}
