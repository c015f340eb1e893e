package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/xdg-go/scram"
)

// A probe is one real request of an API's own protocol, with credentials, that reaches the core. The server is ready when
// each enabled API has answered its probe.
type probe func(ctx context.Context, s *Server, addr string) error

var probes = map[string]probe{NoSQL: probeNoSQL, Table: probeTable, Gremlin: probeGremlin, Mongo: probeMongo}

const (
	probeTimeout = 5 * time.Second
	probePause   = 20 * time.Millisecond
)

// probeUntilReady sets ready; it stops with ctx.
func (s *Server) probeUntilReady(ctx context.Context) {
	for _, b := range s.bound {
		p := s.parts.probes[b.name]
		if p == nil {
			continue
		}
		last := ""
		for {
			one, cancel := context.WithTimeout(ctx, probeTimeout)
			err := p(one, s, b.addr)
			cancel()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			if err.Error() != last {
				last = err.Error()
				s.log.Warn("An API does not answer yet", "api", b.name, "error", err)
			}
			t := time.NewTimer(probePause)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
		}
	}
	s.ready.Store(true)
	s.log.Info("Every API answers", "took", s.cfg.Clock.Now().Sub(s.began).Round(time.Millisecond))
}

func (s *Server) sign(text string) string {
	key, _ := base64.StdEncoding.DecodeString(s.cfg.Key) // checked by Validate
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// fetch sends a GET and wants 200.
func fetch(ctx context.Context, url string, header map[string]string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Close = true
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 300))
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, res.Status, body)
	}
	return nil
}

// probeNoSQL lists the databases.
func probeNoSQL(ctx context.Context, s *Server, addr string) error {
	date := s.cfg.Clock.Now().Format(http.TimeFormat)
	h := map[string]string{"x-ms-date": date, "x-ms-version": "2018-12-31"}
	if s.cfg.Auth {
		h["Authorization"] = url.QueryEscape("type=master&ver=1.0&sig=" + s.sign("get\ndbs\n\n"+strings.ToLower(date)+"\n\n"))
	}
	return fetch(ctx, "http://"+addr+"/dbs", h)
}

// probeTable lists the tables.
func probeTable(ctx context.Context, s *Server, addr string) error {
	date := s.cfg.Clock.Now().Format(http.TimeFormat)
	h := map[string]string{"x-ms-date": date, "x-ms-version": "2019-02-02", "Accept": "application/json;odata=nometadata"}
	if s.cfg.Auth {
		h["Authorization"] = "SharedKeyLite " + s.cfg.Account + ":" + s.sign(date+"\n/"+s.cfg.Account+"/Tables")
	}
	return fetch(ctx, "http://"+addr+"/Tables", h)
}

// probeGremlin logs in to graphs/g, which exists always, and asks for one vertex.
func probeGremlin(ctx context.Context, s *Server, addr string) error {
	c, _, err := websocket.DefaultDialer.DialContext(ctx, "ws://"+addr+"/gremlin", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if d, ok := ctx.Deadline(); ok {
		_ = c.SetReadDeadline(d)
		_ = c.SetWriteDeadline(d)
	}
	id := s.cfg.Clock.UUID().String()
	send := func(op string, args map[string]any) error {
		const mime = "application/vnd.gremlin-v2.0+json"
		body, err := json.Marshal(map[string]any{"requestId": map[string]any{"@type": "g:UUID", "@value": id},
			"op": op, "processor": "", "args": args})
		if err != nil {
			return err
		}
		return c.WriteMessage(websocket.BinaryMessage, append(append([]byte{byte(len(mime))}, mime...), body...))
	}
	err = send("eval", map[string]any{"gremlin": "g.V().limit(1)", "language": "gremlin-groovy", "bindings": map[string]any{}})
	for range 3 {
		if err != nil {
			return err
		}
		_, raw, rerr := c.ReadMessage()
		if rerr != nil {
			return rerr
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
		case 407:
			err = send("authentication", map[string]any{
				"sasl": base64.StdEncoding.EncodeToString([]byte("\x00/dbs/graphs/colls/g\x00" + s.cfg.Key))})
		default:
			return fmt.Errorf("gremlin status %d: %s", res.Status.Code, res.Status.Message)
		}
	}
	return errors.New("gremlin: no result")
}

// probeMongo logs in and lists the databases.
func probeMongo(ctx context.Context, s *Server, addr string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if t, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(t)
	}
	if _, err := command(c, `{"hello":1,"$db":"admin"}`); err != nil {
		return err
	}
	if s.cfg.Auth {
		if err := s.mongoLogin(c); err != nil {
			return err
		}
	}
	_, err = command(c, `{"listDatabases":1,"nameOnly":true,"$db":"admin"}`)
	return err
}

func (s *Server) mongoLogin(c net.Conn) error {
	client, err := scram.SHA256.NewClient(s.cfg.Account, s.cfg.Key, "")
	if err != nil {
		return err
	}
	conv := client.NewConversation()
	step, err := conv.Step("")
	if err != nil {
		return err
	}
	payload := func() string { return base64.StdEncoding.EncodeToString([]byte(step)) }
	reply, err := command(c, `{"saslStart":1,"mechanism":"SCRAM-SHA-256","payload":{"$binary":{"base64":"`+payload()+`","subType":"00"}},"$db":"admin"}`)
	for range 3 {
		if err != nil {
			return err
		}
		if step, err = conv.Step(string(doc.Get(reply, "payload").Bytes())); err != nil {
			return err
		}
		if done := doc.Get(reply, "done"); done.Kind() == value.Bool && done.Bool() {
			return nil
		}
		reply, err = command(c, fmt.Sprintf(`{"saslContinue":1,"conversationId":%d,"payload":{"$binary":{"base64":%q,"subType":"00"}},"$db":"admin"}`,
			doc.Get(reply, "conversationId").Int(), payload()))
	}
	return errors.New("mongo: the login does not end")
}

// command sends one OP_MSG and returns the reply's document; a reply with ok other than 1 is an error.
func command(c net.Conn, extJSON string) (doc.Doc, error) {
	const opMsg, headLen = 2013, 16 + 4 + 1
	body, err := doc.FromExtJSON(nil, []byte(extJSON))
	if err != nil {
		return nil, err
	}
	msg := binary.LittleEndian.AppendUint32(nil, uint32(headLen+len(body)))
	for _, n := range []uint32{1, 0, opMsg, 0} { // request id, response to, opcode, flags
		msg = binary.LittleEndian.AppendUint32(msg, n)
	}
	msg = append(append(msg, 0), body...) // one section of kind 0
	if _, err := c.Write(msg); err != nil {
		return nil, err
	}
	var head [headLen]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n < headLen || n > 16<<20 || binary.LittleEndian.Uint32(head[12:]) != opMsg {
		return nil, fmt.Errorf("mongo: not an OP_MSG reply of a sane size: % x", head)
	}
	reply := make([]byte, n-headLen)
	if _, err := io.ReadFull(c, reply); err != nil {
		return nil, err
	}
	if err := doc.Validate(reply, 0); err != nil {
		return nil, err
	}
	if doc.Get(reply, "ok").Float() != 1 {
		return nil, fmt.Errorf("mongo: %s", bytes.TrimSpace(doc.AppendJSON(nil, doc.Value(reply))))
	}
	return reply, nil
}
