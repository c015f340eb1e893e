package mongoapi

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// The cluster time is a clock that all servers of a deployment and their clients move forward together. A client sends
// the latest one that it has seen with each command. So what a client does after it has seen a write has a later time
// than the write, even at a server whose wall clock is behind.
//
// A time is a BSON timestamp: seconds in the upper half, and a counter within the second in the lower one. Each write
// has one of its own; a read has the latest one. Every read sees all writes that were answered before it, at whichever
// server, so a read after a cluster time never has to wait.
//
// Example: the wall clock says 100. A write is answered with (100, 2). Its client goes to a server whose wall clock
// says 99 and sends (100, 2) along. That server's next write has (100, 3).

// maxDrift is how far a client may move the cluster time before the wall clock.
const maxDrift = 365 * 24 * time.Hour

// clusterClock is the cluster time of a server. Safe for concurrent use.
type clusterClock struct {
	now *journal.Clock // the one that gives times to the entries of the journal
	key []byte         // signs times; nil = they have no signature
	// told is the latest time that a client has moved the clock to. This server has given no time between the one
	// before and this one.
	told atomic.Uint64
	// block is the element $clusterTime with the signature of one second. Its time is filled in for each reply.
	block atomic.Pointer[timeBlock]
}

// timeBlock is the element $clusterTime of the replies of one second.
type timeBlock struct {
	second uint32
	elem   []byte
}

// timeOffset is where the time stands in the element $clusterTime: after both names and the length of the document.
const timeOffset = 1 + len("$clusterTime\x00") + 4 + 1 + len("clusterTime\x00")

// init sets the key of the signatures, which all servers of an account have.
func (c *clusterClock) init(account, key string, auth bool) {
	if !auth {
		return
	}
	h := hmac.New(sha1.New, []byte(key))
	h.Write([]byte("cluster time of " + account))
	c.key = h.Sum(nil)
}

// tick returns the cluster time of a reply. A write moves it.
func (c *clusterClock) tick(now time.Time, write bool) uint64 { return c.now.Tick(now, write) }

// advance moves the cluster time to a later one that a client has sent with its signature.
func (c *clusterClock) advance(t uint64, hash []byte, now time.Time) *merr.Error {
	if t <= c.now.Last() {
		return nil
	}
	if c.key != nil && !hmac.Equal(hash, c.sign(uint32(t>>32))) {
		return merr.New(merr.TimeProofMismatch, "Proof does not match the cluster time %s", timeText(t))
	}
	if most := now.Add(maxDrift).Unix(); int64(t>>32) > most {
		return merr.New(merr.ClusterTimeTooFar, "New cluster time, %d, is too far from this node's wall clock time, "+
			"%d.", t>>32, now.Unix())
	}
	for was := c.told.Load(); was < t && !c.told.CompareAndSwap(was, t); was = c.told.Load() {
	}
	c.now.Advance(t)
	return nil
}

// sign returns the signature of the times of a second: zeros without a key.
func (c *clusterClock) sign(second uint32) []byte {
	if c.key == nil {
		return make([]byte, sha1.Size)
	}
	h := hmac.New(sha1.New, c.key)
	h.Write(binary.BigEndian.AppendUint32(nil, second))
	return h.Sum(nil)
}

// append appends the fields of a reply with a time.
func (c *clusterClock) append(dst []byte, t, operation uint64) []byte {
	b := c.block.Load()
	if b == nil || b.second != uint32(t>>32) {
		b = &timeBlock{second: uint32(t >> 32), elem: c.element(uint32(t >> 32))}
		c.block.Store(b)
	}
	at := len(dst) + timeOffset
	dst = append(dst, b.elem...)
	binary.LittleEndian.PutUint64(dst[at:], t)
	return value.AppendElement(dst, "operationTime", value.TimestampOf(operation))
}

// element returns the element $clusterTime of a second.
func (c *clusterClock) element(second uint32) []byte {
	at, dst := bson.BeginObject(nil, "$clusterTime")
	dst = value.AppendElement(dst, "clusterTime", value.TimestampOf(0))
	sa, dst := bson.BeginObject(dst, "signature")
	dst = bson.AppendBinary(dst, "hash", c.sign(second))
	keyID := int64(0)
	if c.key != nil {
		keyID = 1
	}
	return bson.End(bson.End(bson.AppendInt64(dst, "keyId", keyID), sa), at)
}

// timeText returns a cluster time as error texts show it.
func timeText(t uint64) string { return fmt.Sprintf("{ ts: Timestamp(%d, %d) }", t>>32, uint32(t)) }

// gossip reads the argument $clusterTime. Before a login a wrong time is only ignored.
func (r *request) gossip(v value.Value) error {
	if r.s.o.Standalone {
		return nil
	}
	t, sig := v.Get("clusterTime"), v.Get("signature")
	if t.Kind() != value.Timestamp {
		return args.WrongType("clusterTime", "timestamp", t)
	}
	if err := r.s.times.advance(t.Raw64(), sig.Get("hash").Bytes(), r.start); err != nil && r.c.authed {
		return err
	}
	return nil
}

// timed appends the times to a complete reply.
func (r *request) timed(reply []byte, at int) []byte {
	if r.s.o.Standalone {
		return reply
	}
	t := r.s.times.tick(r.start, r.writes && r.commit == 0)
	operation := t
	switch {
	case r.commit != 0:
		operation = r.commit
	case r.seen != 0 && !r.writes:
		operation = r.seen
	}
	return bson.End(r.s.times.append(reply[:len(reply)-1], t, operation), at)
}

// checkAfter checks the time after which a command wants to read.
func (r *request) checkAfter() error {
	if r.after == 0 {
		return nil
	}
	if r.s.o.Standalone {
		return merr.New(merr.NotAReplicaSet, "node needs to be a replica set member to use read concern")
	}
	if now := r.s.times.tick(r.start, false); r.after > now {
		return merr.New(merr.InvalidOptions, "readConcern afterClusterTime value must not be greater than the current "+
			"clusterTime. Requested clusterTime: %s; current clusterTime: %s", timeText(r.after), timeText(now))
	}
	return nil
}
