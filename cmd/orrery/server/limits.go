package server

import (
	"math"
	"os"
	"runtime/debug"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/sniff"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/internal/admit"
)

const (
	handshake = 10 * time.Second // that a TLS handshake may take

	gateWait = time.Second // that a request waits at a door at most
	oneShare = 2           // one request may hold the part 1/oneShare of what all may
)

// patience is how long a client may take to make itself known.
func (c *Config) patience() sniff.Patience {
	wait := c.bodyTimeout()
	return sniff.Patience{Silence: wait, Handshake: min(wait, handshake)}
}

// requestBytes is what all requests may hold together.
func (c *Config) requestBytes() int64 {
	if c.MemoryMB == 0 {
		return requestMB << 20
	}
	return int64(c.MemoryMB-c.CacheMB) << 20
}

// newBudget is the memory of requests.
func (c *Config) newBudget() *budget.Budget {
	n := c.requestBytes()
	return budget.New(n, n/oneShare)
}

// newSpill is the space for temporary files of requests: beside the store, or with a store in memory in the system's
// directory for them.
func (c *Config) newSpill(e kv.Engine) (*spill.Space, error) {
	o := spill.Options{Limit: int64(c.SpillMB) << 20}
	p, ok := e.(*pebblekv.Engine)
	if !ok {
		return spill.Temp(o), nil
	}
	o.Room = p.Spare
	return spill.Open(spillDir(c.Data), o)
}

// newGate bounds the requests of one door.
func (c *Config) newGate() *admit.Gate {
	return admit.New(admit.Options{Running: c.MaxRequests, Waiting: c.MaxWaiting, Wait: gateWait})
}

// leastSlack is what the process needs beside caches and requests: six memtables of 16 MiB, the catalog and heads,
// stacks, and as much again as room for the garbage collector.
const leastSlack = 256 << 20

// memoryLimit is the soft limit for the process's memory: twice what caches and requests may hold, and leastSlack
// more than that at least. It must stay well above what is live, or the collector would run without end; it is there
// so that garbage doesn't pile up to the machine's limit when much is live.
func (c *Config) memoryLimit() int64 {
	held := c.requestBytes() + int64(c.CacheMB)<<20
	return max(2*held, held+leastSlack)
}

// LimitMemory sets the Go runtime's soft memory limit, unless the user has set GOMEMLIMIT or somebody else a limit.
func (c *Config) LimitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(c.memoryLimit())
	}
}
