package hostile

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// TestSignatures sends invalid signatures in every form of the HTTP APIs: no request is accepted, and no reply is a
// 5xx.
func TestSignatures(t *testing.T) {
	g := start(t, true)
	values := append(hostileValues(), "type=master&ver=1.0&sig=AAAA",
		url.QueryEscape("type=master&ver=1.0&sig="+strings.Repeat("A", 44)),
		url.QueryEscape("type=aad&ver=1.0&sig=x.y.z"), url.QueryEscape("type=resource&ver=1&sig=AAAA;BBBB;"),
		"SharedKey localhost:AAAA", "SharedKeyLite localhost:", "SharedKey :", "SharedKey", "Bearer x",
		"Basic "+base64.StdEncoding.EncodeToString([]byte("a:b")), "SharedKey "+strings.Repeat("x", 20_000))
	for _, v := range values {
		for _, date := range []string{"", "x", "Thu, 01 Jan 1970 00:00:00 GMT",
			time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), strings.Repeat("9", 9000)} {
			for door, path := range map[string]string{server.NoSQL: "/dbs/shop/colls/items/docs", server.Table: "/people()"} {
				code, text := g.do(t, door, "GET", path, "", "Authorization", v, "x-ms-date", date, "x-ms-version",
					"2018-12-31")
				if code < 400 || code >= 500 {
					t.Errorf("%s with %.80q at %.40q: %d %.200s", door, v, date, code, text)
				}
			}
		}
	}
	for _, q := range []string{"sv=2019-02-02&tn=people&sp=r&se=2099-01-01T00:00:00Z&sig=AAAA", "sv=&tn=&sp=&se=&sig=",
		"sig=%ff%fe&sv=%00", "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=x&sig=" + strings.Repeat("A", 9000),
		"sig=a&sig=b&se=%zz", "si=x&tn=people&sv=2019-02-02&sig=AAAA"} {
		if code, text := g.do(t, server.Table, "GET", "/people()?"+q, ""); code < 400 || code >= 500 {
			t.Errorf("SAS %.80q: %d %.200s", q, code, text)
		}
	}
	g.serves(t)
}

// logins are SASL payloads that aren't valid logins.
func logins() []string {
	return []string{"", "\x00", "\x00\x00", "\x00\x00\x00", "a", "\x00a\x00b", "\x00/dbs/shop/colls/items\x00",
		"\x00/dbs/shop/colls/items\x00x", "\x00/dbs//colls/\x00x", "\x00/dbs/\xff/colls/\xfe\x00x",
		strings.Repeat("\x00", 5000), strings.Repeat("x", 100_000),
		"n,,", "n,,n=,r=", "n,,n=localhost", "n,,n=localhost,r=", "n,,n=localhost,r=abcdefghijklmnop",
		"y,,n=localhost,r=x", "p=tls-unique,,n=localhost,r=x", "n,a=b,n=localhost,r=x", "n,,m=x,n=localhost,r=x",
		"n,,n==2,r=x", "n,,n=\xff,r=\xff", "n,,r=x,n=localhost",
		"c=biws,r=x,p=", "c=biws,r=x,p=AAAA", "c=%%%,r=x,p=%%%", ",,,,,,", strings.Repeat("n,,", 5000),
		"n,,n=" + strings.Repeat("l", 50_000) + ",r=x"}
}

// beforeLogin is the largest message in bytes that the MongoDB API reads before a login.
const beforeLogin = 32 << 10

// TestLogins sends invalid logins to the two APIs with SASL, and commands before a login. None is accepted.
func TestLogins(t *testing.T) {
	g := start(t, true)
	for _, first := range logins() {
		for _, mech := range []string{"SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN", "", "x"} {
			c := g.dial(t, server.Mongo)
			ended := false
			send := func(d bson.D) bson.Raw {
				t.Helper()
				m := msg(encode(t, append(d, bson.E{Key: "$db", Value: "admin"})))
				if ended {
					return nil
				}
				if _, err := c.Write(m); err != nil {
					return nil
				}
				r, err := reply(c)
				if ended = err != nil && len(m) > beforeLogin && !errors.Is(err, os.ErrDeadlineExceeded); ended {
					return nil // such a long message ends the connection of a client that isn't logged in
				}
				if err != nil {
					t.Errorf("%s %.60q: %v", mech, first, err)
				}
				return r
			}
			send(bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: mech},
				{Key: "payload", Value: []byte(first)}})
			for _, second := range []string{"", "c=biws,r=x,p=AAAA", first} {
				if r := send(bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 1},
					{Key: "payload", Value: []byte(second)}}); r != nil {
					if ok, _ := r.Lookup("ok").AsFloat64OK(); ok == 1 {
						t.Errorf("%s %.60q %q: %s", mech, first, second, r)
					}
				}
			}
			if r := send(bson.D{{Key: "find", Value: "items"}}); r != nil {
				if code, _ := r.Lookup("code").AsInt64OK(); code != 13 {
					t.Errorf("find without a login: %s", r)
				}
			}
			_ = c.Close()
		}
	}
	for _, p := range logins() {
		c := g.ws(t)
		_ = c.SetReadDeadline(time.Now().Add(answerTime))
		if err := c.WriteMessage(websocket.BinaryMessage, withMime(graphSON3, eval(t, "eval", "g.V()", nil))); err !=
			nil {
			t.Fatal(err)
		}
		if code := last(t, c, "a script"); code != 407 {
			t.Errorf("a script without a login: %d", code)
		}
		for _, sasl := range []any{base64.StdEncoding.EncodeToString([]byte(p)), p, 1, nil} {
			b, err := json.Marshal(map[string]any{
				"requestId": "11111111-1111-4111-8111-111111111111", "op": "authentication", "processor": "",
				"args": map[string]any{"saslMechanism": "PLAIN", "sasl": sasl}})
			if err != nil {
				t.Fatal(err)
			}
			if c.WriteMessage(websocket.BinaryMessage, withMime(graphSON3, b)) != nil {
				break
			}
			_, out, err := c.ReadMessage()
			if err != nil {
				break // the server closes the connection after several attempts
			}
			if strings.Contains(string(out), `"code":200`) || strings.Contains(string(out), `"code":204`) {
				t.Errorf("logged in with %.60q: %s", p, out)
			}
		}
		_ = c.Close()
	}
	g.serves(t)
}
