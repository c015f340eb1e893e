package mongoapi

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// frame reads one message as it is sent.
func (c *client) frame() (h wire.Header, msg []byte) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(soon))
	msg = make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(c, msg); err != nil {
		c.t.Fatal(err)
	}
	h, err := wire.ParseHeader(msg, wire.MaxMessage)
	if err != nil {
		c.t.Fatal(err)
	}
	msg = append(msg, make([]byte, h.Length-wire.HeaderSize)...)
	if _, err := io.ReadFull(c, msg[wire.HeaderSize:]); err != nil {
		c.t.Fatal(err)
	}
	return h, msg
}

// compressed returns a command as an OP_COMPRESSED.
func compressed(t testing.TB, d bson.D, z wire.Compressor) []byte {
	t.Helper()
	out, ok := wire.AppendCompressed(nil, rawMsg(t, d), z)
	if !ok {
		t.Fatal("not compressed")
	}
	return out
}

// padded is a command that compressors make shorter.
func padded(d bson.D) bson.D {
	return append(d, bson.E{Key: "comment", Value: strings.Repeat("x", 4000)})
}

// TestCompressors: hello names the compressors that both sides know, in the client's order.
func TestCompressors(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	for _, x := range []struct {
		offered any
		want    string
	}{
		{bson.A{"zstd", "none", "snappy", "zlib"}, `["zstd","snappy","zlib"]`},
		{bson.A{"zlib"}, `["zlib"]`},
		{bson.A{"none", 1}, ""},
		{bson.A{}, ""},
		{"snappy", ""},
	} {
		raw, e := c.ask(bson.D{{Key: "hello", Value: 1}, {Key: "compression", Value: x.offered}})
		if got := raw.Lookup("compression").String(); e.OK != 1 || got != x.want {
			t.Errorf("%v: %s, want %s", x.offered, got, x.want)
		}
	}
}

// TestCompressedMessages: a reply is compressed as its message was, if it is long.
func TestCompressedMessages(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	someDocs(c, "c", 50, strings.Repeat("y", 1000))
	for _, z := range []wire.Compressor{wire.Snappy, wire.Zlib, wire.Zstd} {
		for _, x := range []struct {
			cmd  bson.D
			long bool
		}{{bson.D{{Key: "find", Value: "c"}}, true}, {bson.D{{Key: "ping", Value: 1}}, false}} {
			if _, err := c.Write(compressed(t, padded(x.cmd), z)); err != nil {
				t.Fatal(err)
			}
			h, msg := c.frame()
			if !x.long {
				if h.OpCode != wire.OpMsg {
					t.Errorf("compressor %d: op code %d of a short reply", z, h.OpCode)
				}
				continue
			}
			p, err := wire.ParseCompressed(h, msg, wire.MaxMessage)
			if err != nil || h.OpCode != wire.OpCompressed || p.Compressor != z || h.ResponseTo != 1 {
				t.Fatalf("compressor %d: %+v, %v", z, h, err)
			}
			plain, err := p.Append(make([]byte, 0, p.Header.Length))
			if err != nil || bytes.Count(plain, []byte("yyyy")) < 50 {
				t.Errorf("compressor %d: %d bytes, %v", z, len(plain), err)
			}
		}
	}
	if _, e := c.ask(bson.D{{Key: "find", Value: "c"}}); e.OK != 1 { // the reply to a plain message is plain
		t.Error(e)
	}
	silent := rawMsg(t, padded(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}}))
	binary.LittleEndian.PutUint32(silent[wire.HeaderSize:], wire.FlagMore)
	out, _ := wire.AppendCompressed(nil, silent, wire.Zstd)
	if _, err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	if raw, e := c.ask(bson.D{{Key: "count", Value: "c"}}); e.OK != 1 || raw.Lookup("n").AsInt64() != 51 {
		t.Errorf("after a compressed message without a reply: %s", raw)
	}
}

// TestCompressedMessagesAreLimited: a size that a message only claims costs no memory beyond the budget, and a message
// that can't be read has a reply.
func TestCompressedMessagesAreLimited(t *testing.T) {
	b := budget.New(1<<30, 256<<10)
	_, addr := serve(t, Options{}, b)
	c := connect(t, addr)
	claims := func(n uint32) []byte {
		m := compressed(t, padded(bson.D{{Key: "ping", Value: 1}}), wire.Snappy)
		binary.LittleEndian.PutUint32(m[wire.HeaderSize+4:], n)
		return m
	}
	bomb := compressed(t, bson.D{{Key: "ping", Value: 1}, {Key: "comment", Value: strings.Repeat("x", 8<<20)}},
		wire.Zstd)
	unknown := claims(100)
	unknown[wire.HeaderSize+8] = 99
	for _, x := range []struct {
		name string
		msg  []byte
		code int32
	}{
		{"too long for a message", claims(wire.MaxMessage), 2},
		{"too long for the budget", claims(40 << 20), 292},
		{"another size", claims(100), 2},
		{"an unknown compressor", unknown, 2},
		{"a bomb", bomb, 292},
	} {
		if _, err := c.Write(x.msg); err != nil {
			t.Fatal(err)
		}
		raw, err := c.recv()
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if got := raw.Lookup("code").AsInt64(); got != int64(x.code) {
			t.Errorf("%s: %s", x.name, raw)
		}
	}
	if _, e := c.ask(bson.D{{Key: "ping", Value: 1}}); e.OK != 1 {
		t.Error(e)
	}
	_, addr = serve(t, Options{Auth: true, Limits: patient}, nil)
	c = connect(t, addr)
	if _, err := c.Write(compressed(t, bson.D{{Key: "hello", Value: 1},
		{Key: "comment", Value: strings.Repeat("x", 64<<10)}}, wire.Zlib)); err != nil {
		t.Fatal(err)
	}
	if raw, err := c.recv(); err != nil || raw.Lookup("code").AsInt64() != 2 {
		t.Errorf("a long message before the login: %s, %v", raw, err)
	}
}
