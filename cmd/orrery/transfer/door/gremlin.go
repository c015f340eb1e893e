package door

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/core/clock"
)

// GremlinClient runs traversals, written as texts, on one graph. Results come in the untyped JSON of
// GraphSON 1, which is also the service's. Not safe for concurrent use.
//
// Example: "g.V().values('name')" gives "Ann", then "Bob".
type GremlinClient struct {
	s     *Server
	graph string // DATABASE/GRAPH
	ws    *websocket.Conn
	ids   *clock.Clock

	Charge float64 // request units of the last traversal
}

// NewGremlinClient returns a client, which connects with its first traversal.
func NewGremlinClient(s *Server, db, graph string) *GremlinClient {
	return &GremlinClient{s: s, graph: db + "/" + graph, ids: clock.New()}
}

// Close closes the connection.
func (c *GremlinClient) Close() error {
	if c.ws == nil {
		return nil
	}
	ws := c.ws
	c.ws = nil
	return ws.Close()
}

// gremlinMime names the serializer of requests and replies, in one byte its length.
const gremlinMime = "\x21application/vnd.gremlin-v1.0+json"

func (c *GremlinClient) send(id, op string, args map[string]any) error {
	body, err := json.Marshal(map[string]any{"requestId": id,
		"op": op, "processor": "", "args": args})
	if err != nil {
		return err
	}
	return c.ws.WriteMessage(websocket.BinaryMessage, append([]byte(gremlinMime), body...))
}

// dial connects unless there is a connection.
func (c *GremlinClient) dial(ctx context.Context) error {
	if c.ws != nil {
		return nil
	}
	if c.s.Gremlin == "" {
		return errors.New("the server has no Gremlin API (--gremlin-addr off), or its address isn't known")
	}
	d := websocket.Dialer{HandshakeTimeout: mongoPatience}
	ws, res, err := d.DialContext(ctx, c.s.Gremlin, nil)
	if err != nil {
		if res != nil && res.StatusCode != 101 {
			return fmt.Errorf("%s answers %s", c.s.Gremlin, res.Status)
		}
		return plainError(lost(c.s.Gremlin, err))
	}
	c.ws = ws
	return nil
}

// Eval runs a traversal and calls f with each result. If ctx ends, the connection is closed, and with it the traversal
// ends.
func (c *GremlinClient) Eval(ctx context.Context, script string, f func(json.RawMessage) error) error {
	fresh := c.ws == nil
	if err := c.dial(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.ws.NetConn().Close() })
	began, err := c.eval(script, f)
	if !stop() || err != nil && !errors.As(err, new(*gremlinError)) {
		_ = c.Close()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.As(err, new(*gremlinError)) && !fresh && !began:
		return fmt.Errorf("the connection was closed: enter the traversal again (%w)", err)
	}
	return err
}

// gremlinError is a refusal of the server: the connection goes on.
type gremlinError struct {
	code int
	text string
}

// Error implements error.
func (e *gremlinError) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

// eval sends a traversal and reads its replies. began says whether there was one.
func (c *GremlinClient) eval(script string, f func(json.RawMessage) error) (began bool, err error) {
	id := c.ids.UUID().String()
	c.Charge = 0
	err = c.send(id, "eval", map[string]any{"gremlin": script, "language": "gremlin-groovy",
		"bindings": map[string]any{}, "aliases": map[string]string{"g": c.graph}})
	for err == nil {
		var raw []byte
		if _, raw, err = c.ws.ReadMessage(); err != nil {
			break
		}
		began = true
		var res struct {
			Status struct {
				Code       int
				Message    string
				Attributes struct {
					Charge float64 `json:"x-ms-request-charge"` // of this part of the reply
				}
			}
			Result struct{ Data []json.RawMessage }
		}
		if err := json.Unmarshal(raw, &res); err != nil {
			return true, fmt.Errorf("the reply of %s can't be read: %w", c.s.Gremlin, err)
		}
		c.Charge += res.Status.Attributes.Charge
		switch res.Status.Code {
		case 200, 204, 206:
			for _, one := range res.Result.Data {
				if err := f(one); err != nil {
					return true, err
				}
			}
			if res.Status.Code != 206 {
				return true, nil
			}
		case 407:
			db, graph, _ := strings.Cut(c.graph, "/")
			login := "\x00/dbs/" + db + "/colls/" + graph + "\x00" + c.s.Key
			err = c.send(id, "authentication", map[string]any{"sasl": base64.StdEncoding.EncodeToString([]byte(login))})
		default:
			return true, &gremlinError{res.Status.Code, sentenceOf(res.Status.Message)}
		}
	}
	return began, plainError(lost(c.s.Gremlin, err))
}

// sentenceOf returns the sentence of an error in the service's form, which has other fields in further lines.
//
//	ExceptionMessage :
//		Unexpected '.': an argument is expected
//	Source : ..
func sentenceOf(message string) string {
	if _, rest, ok := strings.Cut(message, "ExceptionMessage :"); ok {
		message, _, _ = strings.Cut(rest, "Source :")
	}
	return strings.TrimSpace(message)
}
