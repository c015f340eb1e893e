package graphapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// attribute returns a numeric status attribute from either form of a map, -1 if it is absent.
func attribute(t testing.TB, a answer, name string) float64 {
	t.Helper()
	var plain map[string]json.RawMessage
	if err := json.Unmarshal(a.Status.Attributes, &plain); err != nil {
		t.Fatal(err)
	}
	if flat, ok := plain["@value"]; ok {
		var l []json.RawMessage
		json.Unmarshal(flat, &l)
		plain = map[string]json.RawMessage{}
		for i := 0; i+1 < len(l); i += 2 {
			plain[strings.Trim(string(l[i]), `"`)] = l[i+1]
		}
	}
	raw, ok := plain[name]
	if !ok {
		return -1
	}
	var typed struct {
		Value *float64 `json:"@value"`
	}
	if json.Unmarshal(raw, &typed) == nil && typed.Value != nil {
		return *typed.Value
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatalf("%s is %s", name, raw)
	}
	return f
}

// The reply has the id of the challenged request, whatever id the client's authentication has.
func TestLoginReplyID(t *testing.T) {
	s := newServer(t, true)
	for _, proofID := range []string{id1, id2} {
		c := s.dial(t)
		c.request(id1, "eval", "", `{"gremlin":"name"}`)
		a := c.want(407, id1, challenge)
		if string(a.Result.Data) != "null" || attribute(t, a, "x-ms-status-code") != 407 {
			t.Errorf("challenge: %+v", a)
		}
		c.request(proofID, "authentication", "traversal", sasl("localhost", testKey))
		c.want(200, id1, "graphs/g")
		c.eval("name") // one login per connection
		c.want(200, id1, "graphs/g")
	}
}

func TestLogins(t *testing.T) {
	s := newServer(t, true)
	for _, x := range []struct {
		name, args string
		code       int
		part       string
	}{
		{"account", sasl("localhost", testKey), 200, "graphs/g"},
		{"graph", sasl("/dbs/db/colls/people", testKey), 200, "db/people"},
		{"graph without the first slash", sasl("dbs/db/colls/people/", testKey), 200, "db/people"},
		{"mechanism named", `{"saslMechanism":"plain",` + sasl("localhost", testKey)[1:], 200, "graphs/g"},
		{"in capitals", strings.Replace(sasl("localhost", testKey), "sasl", "SASL", 1), 200, "graphs/g"},
		{"as text", `{"SASL":"\u0000/dbs/db/colls/people\u0000` + testKey + `"}`, 200, "db/people"},
		{"as text with a wrong key", `{"SASL":"\u0000localhost\u0000x"}`, 401, "Invalid credentials"},
		{"wrong key", sasl("localhost", "x"), 401, "Unauthorized: Invalid credentials provided"},
		{"wrong account", sasl("other", testKey), 401, "Invalid credentials"},
		{"graph with a wrong key", sasl("/dbs/db/colls/people", "x"), 401,
			"Unauthorized: Invalid credentials provided"},
		{"unknown graph", sasl("/dbs/db/colls/nobody", testKey), 500, "Owner resource does not exist"},
		{"unknown graph with a wrong key", sasl("/dbs/db/colls/nobody", "x"), 401, "Invalid credentials"},
		{"other mechanism", `{"saslMechanism":"GSSAPI","sasl":""}`, 401, "GSSAPI"},
		{"not base64", `{"sasl":"***"}`, 499, "not base64"},
		{"no proof", `{}`, 499, "needs the argument sasl"},
		{"two parts", `{"sasl":"YWI="}`, 401, "Invalid credentials"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := s.dial(t)
			c.request(id1, "eval", "", `{"gremlin":"name"}`)
			c.want(407, id1, "")
			c.request(id2, "authentication", "", x.args)
			c.want(x.code, id1, x.part)
			if x.code == 200 {
				return
			}
			// A failed login doesn't change the state of the connection: the next request is challenged again.
			c.request(id3, "eval", "", `{"gremlin":"name"}`)
			c.want(407, id3, "")
			c.request(id2, "authentication", "", sasl("localhost", testKey))
			c.want(200, id3, "graphs/g")
		})
	}
}

func TestLoginAttempts(t *testing.T) {
	c := newServer(t, true).dial(t)
	for range maxLoginAttempts {
		c.eval("name")
		c.want(407, id1, "")
		c.request(id2, "authentication", "", sasl("localhost", "wrong"))
		c.want(401, id1, "")
	}
	if _, err := c.tryRecv(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("got %v, want close 1008", err)
	}
}

// Requests that were sent before the login are answered after it. Only the first one is challenged.
func TestRequestsBeforeLogin(t *testing.T) {
	c := newServer(t, true).dial(t)
	for _, id := range []string{id1, id2} {
		c.request(id, "eval", "session", `{"session":"s","gremlin":"name"}`)
	}
	c.want(407, id1, "")
	c.request(id3, "authentication", "session", sasl("localhost", testKey))
	c.want(200, id1, "graphs/g")
	c.want(200, id2, "graphs/g")
}

// Requests that wait for a login which fails all get a reply.
func TestRequestsBeforeFailedLogin(t *testing.T) {
	c := newServer(t, true).dial(t)
	c.request(id1, "eval", "", `{"gremlin":"name"}`)
	c.request(id2, "eval", "", `{"gremlin":"name"}`)
	c.want(407, id1, "")
	c.request(id3, "authentication", "", sasl("localhost", "x"))
	c.want(401, id1, "Invalid credentials")
	c.want(401, id2, "Invalid credentials")
	c.request(id1, "eval", "", `{"gremlin":"name"}`)
	c.want(407, id1, "")
}

// The memory that the server keeps for a client before its login is limited.
func TestStrangersAreBounded(t *testing.T) {
	c := newServer(t, true).dial(t)
	c.request(id1, "eval", "", `{"gremlin":"`+strings.Repeat("x", maxLoginBytes)+`"}`)
	c.want(498, "null", "before the login")
	half := `{"gremlin":"` + strings.Repeat("x", maxLoginBytes*2/5) + `"}`
	c.request(id1, "eval", "", half)
	c.want(407, id1, "")
	c.request(id2, "eval", "", half)
	c.request(id3, "eval", "", half)
	c.want(429, id3, "")
}

func TestLoginUnasked(t *testing.T) {
	c := newServer(t, true).dial(t)
	c.request(id3, "authentication", "", sasl("localhost", testKey))
	c.want(200, id3, "")
	c.eval("name")
	c.want(200, id1, "graphs/g")
}

// A login as a graph of the account selects the service's flavour: untyped JSON for the mime type of GraphSON 2, and
// 200 with an empty list instead of TinkerPop's 204. Other serializers don't change.
func TestServiceFlavour(t *testing.T) {
	c := newServer(t, true).dial(t)
	c.login("/dbs/db/colls/people")
	for _, x := range []struct {
		mime, script string
		code         int
		data         string
	}{
		{v2Mime, "items 0", 200, `[]`},
		{v2Mime, "items 2", 200, `[0,1]`},
		{v2Mime, "vertex", 200, `[{"id":"1","label":"person","type":"vertex","properties":{"name":[{"id":"p",` +
			`"value":"marko"}]}}]`},
		{"application/json", "items 1", 200, `[0]`},
		{v3Mime, "items 1", 200, `{"@type":"g:List","@value":[{"@type":"g:Int32","@value":0}]}`},
	} {
		c.send(x.mime, `{"requestId":"`+id1+`","op":"eval","processor":"","args":{"gremlin":"`+x.script+`"}}`)
		a := c.want(x.code, id1, "")
		if string(a.Result.Data) != x.data {
			t.Errorf("%s %s: %s, want %s", x.mime, x.script, a.Result.Data, x.data)
		}
		for _, name := range []string{"x-ms-status-code", "x-ms-request-charge", "x-ms-total-request-charge",
			"x-ms-server-time-ms", "x-ms-total-server-time-ms"} {
			if attribute(t, a, name) < 0 {
				t.Errorf("%s: no %s in %s", x.script, name, a.Status.Attributes)
			}
		}
	}
}

// In the service's flavour a binding may have any name.
func TestServiceBindings(t *testing.T) {
	c := newServer(t, true).dial(t)
	c.login("/dbs/db/colls/people")
	c.send(v2Mime, `{"requestId":"`+id1+`","op":"eval","args":{"gremlin":"echo","bindings":{"id":"x"}}}`)
	c.want(200, id1, `{"id":"x",`)
}

func TestTinkerPopFlavour(t *testing.T) {
	c := newServer(t, true).dial(t)
	c.login("localhost")
	c.send(v2Mime, `{"requestId":"`+id1+`","op":"eval","processor":"","args":{"gremlin":"items 1"}}`)
	c.want(200, id1, `[{"@type":"g:Int32","@value":0}]`)
	c.send(v2Mime, `{"requestId":"`+id1+`","op":"eval","processor":"","args":{"gremlin":"items 0"}}`)
	c.want(204, id1, `[]`)
}
