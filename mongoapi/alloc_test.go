package mongoapi

import (
	"encoding/binary"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/wire"
)

// TestConnectionsAllocateNothing: reading a message and writing its reply allocates nothing, apart from the command.
func TestConnectionsAllocateNothing(t *testing.T) {
	s, addr := serve(t, Options{}, nil)
	raw := opMsg(t, bson.D{{Key: "ping", Value: 1}})
	c := newConn(t, s, true)
	var m wire.Msg
	var out []byte
	command := testing.AllocsPerRun(1000, func() {
		out, _ = c.answer(out[:0], wire.Header{OpCode: wire.OpMsg}, raw, &m)
	})
	nc := connect(t, addr)
	in := make([]byte, 4096)
	whole := testing.AllocsPerRun(1000, func() {
		_, _ = nc.Write(raw)
		if _, err := io.ReadFull(nc, in[:4]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(nc, in[4:binary.LittleEndian.Uint32(in)]); err != nil {
			t.Fatal(err)
		}
	})
	if whole > command {
		t.Errorf("%v allocations for a message, %v for its command", whole, command)
	}
}
