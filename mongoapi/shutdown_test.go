package mongoapi

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The command shutdown calls what ends the process, and ends its connection without a reply. A user without the right
// to it is refused.
func TestShutdownCommand(t *testing.T) {
	stopped := make(chan bool, 1)
	_, addr := serve(t, Options{Auth: true, Stop: func() { stopped <- true }}, nil)
	end := bson.D{{Key: "shutdown", Value: 1}, {Key: "$db", Value: "admin"}}
	c := connect(t, addr)
	c.login()
	for user, roles := range map[string]bson.A{"reader": {"readAnyDatabase"}, "host": {"hostManager"}} {
		c.ask(bson.D{{Key: "createUser", Value: user}, {Key: "pwd", Value: "secret"}, {Key: "roles", Value: roles},
			{Key: "$db", Value: "admin"}})
	}
	for _, user := range []string{"reader", "host"} {
		c := connect(t, addr)
		if e := c.loginAs("admin", user, "secret", "SCRAM-SHA-256"); e.OK != 1 {
			t.Fatal(e)
		}
		c.send(end)
		raw, err := c.recv()
		if user == "reader" {
			if err != nil || raw.Lookup("code").AsInt64() != 13 || len(stopped) > 0 {
				t.Errorf("%s: %v, %v, %d", user, raw, err, len(stopped))
			}
			continue
		}
		if err == nil {
			t.Errorf("%s gets a reply: %v", user, raw)
		}
		select {
		case <-stopped:
		case <-time.After(10 * time.Second):
			t.Error("the server isn't stopped")
		}
	}
}
