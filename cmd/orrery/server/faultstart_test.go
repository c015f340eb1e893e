package server

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A rule hits the first request of a client, also when the server or the account has just begun: requests by which the
// server finds out whether its APIs answer don't use it up.
func TestFaultsOfTheFirstRequest(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	hit := func(t *testing.T, root, of *Server) {
		t.Helper()
		for _, api := range []string{NoSQL, Table, Gremlin, Mongo} {
			f := Fault{Account: of.cfg.Account, API: api, Kind: "429", Count: 1}
			if _, err := root.AddFault(f); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Millisecond) // a client comes a little later
		for _, api := range []string{NoSQL, Table, Gremlin, Mongo} {
			if err := probes[api](ctx, of); err == nil {
				t.Errorf("the first request of %s succeeds", api)
			}
			if err := probes[api](ctx, of); err != nil {
				t.Errorf("the second request of %s: %v", api, err)
			}
		}
	}
	for range 5 {
		s := testServer(t, "")
		hit(t, s, s)
		for _, name := range strings.Fields("a b c") {
			a, err := s.AddAccount(name)
			if err != nil {
				t.Fatal(err)
			}
			hit(t, s, a)
		}
		stopNow(t, s)
	}
}
