package mongoapi

import (
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/peer"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// message puts a header before body.
func message(op uint32, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(wire.HeaderSize+len(body)))
	b = append(b, 1, 0, 0, 0, 0, 0, 0, 0)
	return append(binary.LittleEndian.AppendUint32(b, op), body...)
}

func opMsg(t testing.TB, d bson.D) []byte {
	t.Helper()
	b, err := bson.Marshal(append(d, bson.E{Key: "$db", Value: "db"}))
	if err != nil {
		t.Fatal(err)
	}
	return message(wire.OpMsg, append([]byte{0, 0, 0, 0, 0}, b...))
}

// newConn returns a connection of which only the addresses are used.
func newConn(t testing.TB, s *Server, authed bool) *conn {
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	c := &conn{s: s, home: s, nc: here, p: peer.New(here, peer.Defaults, nil), authed: authed}
	c.ctx, _ = c.p.Begin(false)
	return c
}

// answerRaw passes a message to the connection like the read loop does, and checks that the reply is complete.
func answerRaw(t *testing.T, c *conn, op uint32, body []byte) (reply bson.Raw) {
	t.Helper()
	raw := message(op, body)
	h := wire.Header{Length: int32(len(raw)), RequestID: 1, OpCode: int32(op)}
	out, err := c.answer(nil, h, raw, &wire.Msg{})
	if err != nil || len(out) == 0 {
		return nil // the connection would be closed, or no reply is expected
	}
	skip := wire.HeaderSize + 5
	if op == wire.OpQuery || op == wire.OpGetMore {
		skip = wire.HeaderSize + 20
	}
	if len(out) < skip || int(binary.LittleEndian.Uint32(out)) != len(out) {
		t.Fatalf("a reply of a wrong length: %q", out)
	}
	if reply = bson.Raw(out[skip:]); reply.Validate() != nil {
		t.Fatalf("a reply that is no BSON: %q", reply)
	}
	return reply
}

// FuzzMessage: no message makes the server panic or reply with malformed BSON. `query` selects OP_QUERY.
func FuzzMessage(f *testing.F) {
	for _, d := range []bson.D{
		{{Key: "hello", Value: 1}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: 1}}}}},
			{Key: "sort", Value: bson.D{{Key: "a", Value: 1}}}},
		{
			{Key: "insert", Value: "c"},
			{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 2}}}}},
		{
			{Key: "update", Value: "c"},
			{
				Key: "updates", Value: bson.A{
					bson.D{{Key: "q", Value: bson.D{}},
						{Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "a", Value: 1}}}}}}}}},
		{
			{Key: "delete", Value: "c"},
			{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 1}}}}},
		{{Key: "aggregate", Value: "c"},
			{Key: "pipeline", Value: bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$a"}}}}}},
			{Key: "cursor", Value: bson.D{}}},
		{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{}}, {Key: "remove", Value: true}},
		{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a"}}}}},
	} {
		f.Add(false, opMsg(f, d)[wire.HeaderSize:])
	}
	hello, err := bson.Marshal(bson.D{{Key: "isMaster", Value: 1}})
	if err != nil {
		f.Fatal(err)
	}
	head := []byte("\x00\x00\x00\x00admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff")
	f.Add(true, append(head[:len(head):len(head)], hello...))
	// A text that is longer than its document.
	f.Add(true, append(head[:len(head):len(head)], "\x0e\x00\x00\x00\x02a\x00\xff\xff\xff\x7fb\x00\x00"...))
	f.Add(true, append(head[:len(head):len(head)], "\x06\x00\x00\x00\x02\x00"...)) // a name without an end
	s := newTestServer(f, Options{})
	f.Fuzz(func(t *testing.T, query bool, body []byte) {
		op := uint32(wire.OpMsg)
		if query {
			op = wire.OpQuery
		}
		answerRaw(t, newConn(t, s, true), op, body)
	})
}

// FuzzLogin: no pair of SASL payloads without the key logs in or makes the server panic.
func FuzzLogin(f *testing.F) {
	for _, first := range []string{"n,,n=localhost,r=abcdefghijkl", "n,,n=", "n,a=x,n=localhost,r=a",
		"p=x,,n=localhost,r=a", "\x00localhost\x00x", "", ",,,"} {
		f.Add("SCRAM-SHA-256", first, "c=biws,r=abc,p=AAAA")
		f.Add("SCRAM-SHA-1", first, "")
		f.Add("PLAIN", first, first)
	}
	s := newTestServer(f, Options{Auth: true})
	f.Fuzz(func(t *testing.T, mechanism, first, second string) {
		c := newConn(t, s, false)
		answerRaw(
			t, c, wire.OpMsg,
			opMsg(t, bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: mechanism},
				{Key: "payload", Value: []byte(first)}})[wire.HeaderSize:])
		for range 2 {
			answerRaw(
				t, c, wire.OpMsg, opMsg(
					t, bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 1},
						{Key: "payload", Value: []byte(second)}})[wire.HeaderSize:])
		}
		if c.authed {
			t.Fatalf("%q: %q %q logged in", mechanism, first, second)
		}
		var e struct{ Code int }
		if r := answerRaw(t, c, wire.OpMsg,
			opMsg(t, bson.D{{Key: "find", Value: "c"}})[wire.HeaderSize:]); bson.Unmarshal(r, &e) != nil ||
			e.Code != 13 {
			t.Fatal(errors.New("a find without a login: " + r.String()))
		}
	})
}
