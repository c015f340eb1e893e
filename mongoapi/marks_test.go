package mongoapi

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A statement that was made before the server began is answered as it was, and not made again. So are those of a large
// command of which only a part was made, and the commit of a transaction.
//
// The reply to the repeated command also names the statements that were made before.
func TestRepeatedWritesAfterARestart(t *testing.T) {
	e, err := core.Open(context.Background(), memkv.New(), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var c *conn
	restart := func() {
		s := New(e, Options{Account: "localhost", Key: "a2V5"})
		t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
		c = newConn(t, s, true)
	}
	restart()
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}}
	retryable := func(n int64, d bson.D) bson.D {
		return append(append(bson.D{}, d...), bson.E{Key: "lsid", Value: lsid}, bson.E{Key: "txnNumber", Value: n})
	}
	inside := func(n int64, d bson.D) bson.D {
		return append(retryable(n, d), bson.E{Key: "autocommit", Value: false})
	}
	var many bson.A
	for i := range 50 {
		many = append(many, bson.D{{Key: "_id", Value: 100 + i}})
	}
	inc := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}
	one := bson.D{{Key: "_id", Value: 1}}
	update := bson.D{{Key: "q", Value: one}, {Key: "u", Value: inc}}
	seven := bson.D{{Key: "_id", Value: 7}}
	upsert := bson.D{{Key: "q", Value: seven}, {Key: "u", Value: inc}, {Key: "upsert", Value: true}}
	remove := bson.D{{Key: "q", Value: one}, {Key: "limit", Value: 1}}
	fam := bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: one}, {Key: "update", Value: inc}}
	commands := []bson.D{
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{one}}},
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: many}},
		{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{update, upsert}}},
		append(fam[:3:3], bson.E{Key: "new", Value: true}),
		fam,
		{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{remove}}},
	}
	for i, cmd := range commands {
		n := int64(i + 1)
		first, refused := ask(t, c, retryable(n, cmd))
		if refused.Code != 0 {
			t.Fatalf("%v: %s", cmd, first)
		}
		restart()
		again, _ := ask(t, c, retryable(n, cmd))
		a, b := plain(t, first), plain(t, again)
		if b = retriedField.ReplaceAllString(b, ""); a != b || !retriedField.MatchString(plain(t, again)) {
			t.Errorf("%v was answered with\n%s, and after a restart with\n%s", cmd[0], a, plain(t, again))
		}
		restart()
		if raw, refused := ask(t, c, retryable(n-1, commands[0])); refused.Code != 225 {
			t.Errorf("an older command: %s", raw)
		}
	}
	small := bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 100}}}}
	raw, _ := ask(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: small}})
	if n := raw.Lookup("cursor", "firstBatch", "0", "n").Int32(); n != 1 {
		t.Errorf("left: %s", raw)
	}

	start := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 9}}}}}
	start = append(inside(20, start), bson.E{Key: "startTransaction", Value: true})
	if raw, refused := ask(t, c, start); refused.Code != 0 {
		t.Fatal(raw)
	}
	commit := func(n int64) int32 {
		d := append(inside(n, bson.D{{Key: "commitTransaction", Value: 1}}), bson.E{Key: "$db", Value: "admin"})
		b, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		raw := answerRaw(t, c, 2013, append([]byte{0, 0, 0, 0, 0}, b...))
		code, _ := raw.Lookup("code").Int32OK()
		return code
	}
	for range 3 {
		if code := commit(20); code != 0 {
			t.Errorf("a commit that may be a repeated one: %d", code)
		}
		restart()
	}
	if code := commit(21); code != 251 {
		t.Errorf("the commit of another transaction: %d", code)
	}
}

// plain returns a reply without its times.
func plain(t *testing.T, raw bson.Raw) string { return shown(t, raw) }

// BenchmarkRetryableInsert compares the insert of a document with and without what is kept for a repeated one.
func BenchmarkRetryableInsert(b *testing.B) {
	for _, retryable := range []bool{false, true} {
		b.Run(map[bool]string{false: "plain", true: "retryable"}[retryable], func(b *testing.B) {
			s := newTestServer(b, Options{})
			c := benchConn(s, nil)
			lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}}
			var out []byte
			b.ReportAllocs()
			for n := range b.N {
				doc := bson.D{{Key: "_id", Value: n}, {Key: "a", Value: n % 100},
					{Key: "text", Value: strings.Repeat("x", 900)}}
				d := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{doc}}}
				if retryable {
					d = append(d, bson.E{Key: "lsid", Value: lsid}, bson.E{Key: "txnNumber", Value: int64(n)})
				}
				raw := opMsg(b, d)
				body := raw[21:]
				out = c.run(out[:0], body, nil, false)
			}
		})
	}
}

// retriedField is what only the reply to a repeated command has.
var retriedField = regexp.MustCompile(`"retriedStmtIds?":(\[0[0-9,]*\]|0),`)
