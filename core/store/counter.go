package store

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// counter hands out a container's LSNs and item numbers. Both are reserved ahead in blocks, durable before use, so none is
// ever used twice, also not after a crash: a new process goes on where the reservation ended.
type counter struct {
	eng kv.Engine
	gen uint32

	mu         sync.Mutex
	lsn, lsnTo int64
	num, numTo uint64
}

const (
	formatCounter = 1
	lsnBlock      = 1 << 16
	numBlock      = 1 << 14
)

func (c *counter) load() error {
	b, err := c.eng.Get(keys.AppendMeta(nil, keys.MetaCounter, c.gen, ""))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(b) != 17 || b[0] != formatCounter {
		return status.New(status.Corruption, "counter of unknown format")
	}
	c.lsnTo = int64(binary.BigEndian.Uint64(b[1:]))
	c.numTo = binary.BigEndian.Uint64(b[9:])
	c.lsn, c.num = c.lsnTo, c.numTo
	return nil
}

// nextLSN returns the next LSN above floor.
func (c *counter) nextLSN(ctx context.Context, floor int64) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := max(c.lsn, floor) + 1
	if n > c.lsnTo {
		if err := c.reserve(ctx, n+lsnBlock, c.numTo); err != nil {
			return 0, err
		}
	}
	c.lsn = n
	return n, nil
}

// nextNumber returns the next item number, without its placement bits.
func (c *counter) nextNumber(ctx context.Context) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.num + 1
	if n > c.numTo {
		if err := c.reserve(ctx, c.lsnTo, n+numBlock); err != nil {
			return 0, err
		}
	}
	c.num = n
	return n, nil
}

// limit returns the LSN that nothing of the container can be above.
func (c *counter) limit() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lsnTo
}

// numbers returns the item number (without placement bits) that no item of the container is above.
func (c *counter) numbers() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.numTo
}

func (c *counter) reserve(ctx context.Context, lsn int64, num uint64) error {
	v := make([]byte, 0, 17)
	v = append(v, formatCounter)
	v = binary.BigEndian.AppendUint64(v, uint64(lsn))
	v = binary.BigEndian.AppendUint64(v, num)
	b := kv.Batch{Frees: true} // deletes need numbers, too, and what adds data is refused by itself
	b.Put(keys.AppendMeta(nil, keys.MetaCounter, c.gen, ""), v)
	w, err := c.eng.Write(ctx, &b, nil)
	if err != nil {
		return err
	}
	if err := w.Wait(); err != nil {
		return err
	}
	c.lsnTo, c.numTo = lsn, num
	return nil
}
