package cli

import (
	"strings"
	"testing"
)

// TestFlagsOfMongod: what wrappers pass to mongod, in any order.
func TestFlagsOfMongod(t *testing.T) {
	t.Setenv("ORRERY_PORT", "tcp://10.0.0.1:8081") // as Kubernetes sets it beside a service of this name
	for _, x := range []struct{ args, addr, set, data string }{
		{"", "127.0.0.1:10255", "globaldb", ""},
		{"--replSet rs0 --bind_ip_all", "0.0.0.0:10255", "rs0", ""},
		{"--port 27017 --dbpath /tmp/x --bind_ip 127.0.0.1,::1", "127.0.0.1:27017", "globaldb", "/tmp/x"},
		{"--bind_ip_all --port=27018", "0.0.0.0:27018", "globaldb", ""},
		{"--mongo-addr [::1]:1 --port 2", "[::1]:2", "globaldb", ""},
		{"--port 2 --mongo-addr [::1]:1", "[::1]:1", "globaldb", ""},
	} {
		c, err := parse(t, strings.Fields("serve "+x.args)...)
		if err != nil {
			t.Fatal(x.args, err)
		}
		if s := c.Serve; s.MongoAddr != x.addr || s.Mongo.ReplicaSet != x.set || s.Data != x.data || !s.Auth {
			t.Errorf("%s: %s %s %s", x.args, s.MongoAddr, s.Mongo.ReplicaSet, s.Data)
		}
	}
	if c, err := parse(t, "serve", "--noauth"); err != nil || c.Serve.Auth {
		t.Error(err)
	}
	for _, args := range []string{"--port x", "--port 0", "--port 70000", "--storageEngine wiredTiger",
		"--mongo-addr off --bind_ip_all"} {
		if _, err := parse(t, strings.Fields("serve "+args)...); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
}
