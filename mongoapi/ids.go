package mongoapi

import (
	"sync/atomic"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/value"
)

// objectIDs generates ObjectIds: seconds, five random bytes for the process, a counter with a random start.
type objectIDs struct {
	clk     *clock.Clock
	process [5]byte
	counter atomic.Uint32
}

func (o *objectIDs) init(clk *clock.Clock) {
	var b [8]byte
	clk.Random(b[:])
	copy(o.process[:], b[:5])
	o.clk = clk
	o.counter.Store(uint32(b[5]) | uint32(b[6])<<8 | uint32(b[7])<<16)
}

func (o *objectIDs) next() value.Value {
	t, n := uint32(o.clk.Now().Unix()), o.counter.Add(1)
	return value.ObjectIDOf([]byte{byte(t >> 24), byte(t >> 16), byte(t >> 8), byte(t), o.process[0], o.process[1],
		o.process[2],
		o.process[3], o.process[4], byte(n >> 16), byte(n >> 8), byte(n)})
}
