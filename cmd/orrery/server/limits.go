package server

import (
	"errors"
	"io"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/sniff"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/internal/admit"
)

const (
	handshake = 10 * time.Second // time limit of a TLS handshake

	gateWait = time.Second // time limit of a request's wait at a door
	oneShare = 2           // one request may hold at most 1/oneShare of the memory of all
)

// patience returns the time limits of a client before its first request.
func (c *Config) patience() sniff.Patience {
	wait := c.bodyTimeout()
	return sniff.Patience{Silence: wait, Handshake: min(wait, handshake)}
}

// requestBytes returns the memory limit of all requests together, in bytes.
func (c *Config) requestBytes() int64 {
	if c.MemoryMB == 0 {
		return requestMB << 20
	}
	return int64(c.MemoryMB-c.CacheMB) << 20
}

// newBudget returns the memory budget of requests, which all stores of a server share.
func (c *Config) newBudget() *budget.Budget {
	if c.budget != nil {
		return c.budget
	}
	n := c.requestBytes()
	c.budget = budget.New(n, n/oneShare)
	return c.budget
}

// newSpill is the space for temporary files of requests: in the data directory, or without one in the system's
// directory for them. The lock of the directory is nil if the store has locked it.
func (c *Config) newSpill(e kv.Engine) (files *spill.Space, lock io.Closer, err error) {
	o := spill.Options{Limit: int64(c.SpillMB) << 20}
	if c.directory() == "" {
		return spill.Temp(o), nil, nil
	}
	dir := spillDir(c.directory())
	if p, ok := e.(*pebblekv.Engine); ok {
		if c.spill == nil {
			own := &ownSpill{}
			o.Room = own.room
			own.space, err = spill.Open(dir, o)
			if errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) { // of a store that is only read
				o.Room = nil
				own.space, err = spill.Temp(o), nil
			}
			if err != nil {
				return nil, nil, err
			}
			c.spill = own
		}
		c.spill.store.Store(p)
		return c.spill.space, nil, nil
	}
	if lock, err = pebblekv.LockDirectory(dir); err != nil { // others would remove the files of this server
		return nil, nil, openError(c.Data, err)
	}
	if files, err = spill.Open(dir, o); err != nil {
		err = errors.Join(err, lock.Close())
	}
	return files, lock, err
}

// ownSpill is the space for temporary files in the directory of a store. It stays when test controls replace the store:
// requests on the old one may still have files there.
type ownSpill struct {
	space *spill.Space
	store atomic.Pointer[pebblekv.Engine] // the newest one
}

func (o *ownSpill) room() int64 { return o.store.Load().Spare() }

// newGate returns the gate of one door.
func (c *Config) newGate() *admit.Gate {
	return admit.New(admit.Options{Running: c.MaxRequests, Waiting: c.MaxWaiting, Wait: gateWait})
}

// leastSlack is the memory in bytes that the process needs in addition to caches and requests: six memtables of 16 MiB,
// the catalog and heads, stacks, and the same amount again for the garbage collector.
const leastSlack = 256 << 20

// memoryLimit returns the soft limit of the process's memory: twice the limit of caches and requests, but at least
// leastSlack more than that limit. It must be far above the live memory, or the collector would run all the time. It
// keeps garbage from growing up to the machine's limit when much memory is live.
func (c *Config) memoryLimit() int64 {
	held := c.requestBytes() + int64(c.CacheMB)<<20
	return max(2*held, held+leastSlack)
}

// LimitMemory sets the Go runtime's soft memory limit, unless GOMEMLIMIT or the program has set one already.
func (c *Config) LimitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(c.memoryLimit())
	}
}
