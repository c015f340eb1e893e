package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Targets and methods that no client sends get a reply in the door's own form, with and without credentials.
func TestOddRequestLines(t *testing.T) {
	for _, auth := range []bool{true, false} {
		s := guardedServer(t, func(c *Config) { c.Auth = auth })
		for _, door := range []string{NoSQL, Table, Gremlin, Admin} {
			for _, line := range []string{
				"CONNECT localhost:80", "CONNECT /dbs", "OPTIONS *", "GET *", "PRI *", "BREW /dbs", "HEAD /dbs",
				"get /dbs",
				"GET http://localhost", "GET http://localhost/", "GET http://localhost?x", "GET http:///dbs", "GET //",
				"GET /%2f/%2F",
				"GET /dbs%2fd", "GET /%00", "POST ?", "GET /..", "GET /dbs/../dbs", "GET /;/", "TRACE /",
				"MERGE /Tables",
			} {
				w := dialWire(t, s.Addr(door))
				fmt.Fprintf(w, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", line)
				verb, _, _ := strings.Cut(line, " ")
				res, err := http.ReadResponse(w.in, &http.Request{Method: verb})
				if err != nil || res.StatusCode < 200 || res.StatusCode >= 500 && res.StatusCode != 501 {
					t.Errorf("%s, credentials %v: %s: %v, %v", door, auth, line, res, err)
				}
			}
		}
	}
}
