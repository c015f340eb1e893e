package graphapi

import (
	"context"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// FuzzLogin: a SASL argument without the key neither logs in nor panics, as text and as bytes.
func FuzzLogin(f *testing.F) {
	for _, p := range []string{"", "AAAA", "\x00", "\x00\x00", "\x00localhost\x00", "\x00/dbs/db/colls/people\x00x",
		"\x00/dbs//colls/\x00x", "AGxvY2FsaG9zdAB4", "%%%"} {
		f.Add("PLAIN", p)
	}
	s := newServer(f, true).Server
	f.Fuzz(func(t *testing.T, mechanism, payload string) {
		if strings.Contains(payload, testKey) {
			return
		}
		for _, sasl := range []any{payload, []byte(payload)} {
			args := gvalue.NewMap(2)
			args.Put("saslMechanism", mechanism)
			args.Put("sasl", sasl)
			c := &conn{srv: s, ctx: context.Background()}
			err := c.checkLogin(&work{conn: c, req: &message.Request{Op: "authentication", Args: args}})
			if err == nil {
				t.Fatalf("%q logged in", payload)
			}
			if f := failureOf(err); f.kind == kindInternal {
				t.Fatalf("%q: %v", payload, err)
			}
		}
	})
}
