package store

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
)

// A container may have a log of all versions: each commit of items writes what it has changed to the log, in the same
// batch. An entry has the item's version before the change and the version after it. The key is the LSN of the commit
// and the number of the entry within that LSN. So a reader of the log uses the same positions as a reader of the feed.
//
// The head of a slot decides whether its commits are logged: LogFloor is 0 if they aren't. Otherwise the log has every
// commit from LogFloor on. Entries below it may exist, and are never read.
//
// Example: LogFloor is 40. The log has a create of item "x" with LSN 41, a replace with LSN 45, and a delete with LSN
// 50. After a while the first entry has expired. LogFloor becomes 42, and everything below 42 is removed.

// firstLSN is the least LSN of a commit.
const firstLSN = 1

// LogOp is what a change did to its item.
type LogOp uint8

// The kinds of change in a log.
const (
	LogCreate  LogOp = iota // there is no Previous
	LogReplace              // there are both versions
	LogDelete               // there is no Current
)

// LogEntry is a change of one item. Its items point into the memory that the entry was read from.
type LogEntry struct {
	Op       LogOp
	Expired  bool // the item was deleted because its time to live had ended
	LSN      int64
	Ticks    int64 // time of the commit, 100 ns units since 1970 UTC
	Current  *Item
	Previous *Item

	suffix []byte // place, tuple, id
}

// TS returns the time of the change in seconds since 1970.
func (e *LogEntry) TS() int64 { return e.Ticks / ticksPerSecond }

// Size returns the number of bytes of the entry's documents.
func (e *LogEntry) Size() int { return itemSize(e.Current) + itemSize(e.Previous) }

// Item returns the changed item: its current version, or the deleted one.
func (e *LogEntry) Item() *Item {
	if e.Current != nil {
		return e.Current
	}
	return e.Previous
}

// formatLog is the first byte of an entry. docs/formats.md describes the format.
const formatLog = 1

// Layout of an entry: format u8, flags u8, ticks u64, length of the suffix u16, length of the current version u32,
// checksum u32 of everything before and of the suffix; then the suffix, the current version and the previous version.
const (
	logFixed = 1 + 1 + 8 + 2 + 4
	logHead  = logFixed + 4
)

// Flags of an entry.
const (
	logOpMask  = 3
	logExpired = 1 << 2
)

// roomForLog is about the number of bytes that a part's changes add to the log.
func (p *part) roomForLog() (n int) {
	const version = envFixed + envSum + 4
	for i := range p.chs {
		ch := &p.chs[i]
		n += keys.PrefixLen + 12 + logHead + len(ch.id.suffix) + 2*version + itemSize(ch.old) + itemSize(ch.item)
	}
	return n
}

// log adds the changes of a part to the log. The changes have their LSNs, and the part's next head its time. Expired
// items that the commit removes come before the items that take their ids and unique values.
func (d *draft) log(p *part) {
	if now := d.c.now(); now > p.h.Ticks && p.deletes() {
		p.h.Ticks = now // so times in the log don't decrease
	}
	lsn, n := int64(0), uint32(0)
	add := func(ch *change, at int64, op LogOp, expired bool) {
		if at != lsn {
			lsn, n = at, 0
		}
		d.logChange(p, ch, op, expired, keys.AppendLog(d.mem.key[:0], p.sl.key, uint64(lsn), n))
		n++
	}
	for i := range p.evicted {
		add(&p.evicted[i], p.chs[0].lsn, LogDelete, true)
	}
	for i := range p.chs {
		ch := &p.chs[i]
		if ch.expired {
			add(ch, ch.lsn, LogDelete, true)
		}
		switch {
		case ch.item == nil && !ch.expired:
			add(ch, ch.lsn, LogDelete, false)
		case ch.item != nil && ch.live() == nil:
			add(ch, ch.lsn, LogCreate, false)
		case ch.item != nil:
			add(ch, ch.lsn, LogReplace, false)
		}
	}
}

// deletes reports whether a part removes any item.
func (p *part) deletes() bool {
	return len(p.evicted) > 0 || slices.ContainsFunc(p.chs, func(ch change) bool { return ch.item == nil })
}

// logChange adds one entry.
func (d *draft) logChange(p *part, ch *change, op LogOp, expired bool, key []byte) {
	flags, ticks := byte(op), p.h.Ticks
	if expired {
		flags |= logExpired
	}
	if ch.item != nil {
		ticks = ch.item.Ticks
	}
	suffix := ch.id.suffix
	b := append(d.mem.val[:0], formatLog, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(ticks))
	b = binary.BigEndian.AppendUint16(b, uint16(len(suffix)))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // length of the current version, checksum
	b = append(b, suffix...)
	at := len(b)
	if op != LogDelete {
		b = append(appendEnvelopeHead(b, ch.item, ch.sum), ch.item.Doc...)
	}
	binary.BigEndian.PutUint32(b[logFixed-4:], uint32(len(b)-at))
	binary.BigEndian.PutUint32(b[logFixed:], logChecksum(b, suffix))
	if op != LogCreate {
		b = append(appendEnvelopeHead(b, ch.old, checksumDoc(ch.old.Doc)), ch.old.Doc...)
	}
	d.mem.val = b
	d.put(d.late, key, b)
}

// logChecksum is the checksum of an entry without its versions, which have their own.
func logChecksum(b, suffix []byte) uint32 { return checksum(b[:logFixed], xxhash.Sum64(suffix)) }

func errLog() error { return status.New(status.Corruption, "malformed entry of the log") }

// DecodeLog reads an entry of the log, which points into key and val.
func (v *View) DecodeLog(e *LogEntry, key, val []byte) error { return v.c.decodeLog(e, key, val) }

func (c *Container) decodeLog(e *LogEntry, key, val []byte) error {
	lsn, _, ok := keys.Log(key)
	place := c.placeLen()
	if !ok || len(val) < logHead || val[0] != formatLog {
		return errLog()
	}
	n, cur := int(binary.BigEndian.Uint16(val[10:])), int(binary.BigEndian.Uint32(val[12:]))
	if n <= place || n+cur > len(val)-logHead {
		return errLog()
	}
	*e = LogEntry{Op: LogOp(val[1] & logOpMask), Expired: val[1]&logExpired != 0, LSN: int64(lsn),
		Ticks: int64(binary.BigEndian.Uint64(val[2:])), suffix: val[logHead : logHead+n : logHead+n]}
	now, old := val[logHead+n:logHead+n+cur], val[logHead+n+cur:]
	if e.Op > LogDelete || (len(now) == 0) != (e.Op == LogDelete) || (len(old) == 0) != (e.Op == LogCreate) {
		return errLog()
	}
	version := func(b []byte) (*Item, error) {
		if len(b) == 0 {
			return nil, nil
		}
		it := &Item{ident: e.suffix[place:], paths: len(c.keyPaths())}
		return it, decodeEnvelope(b, it)
	}
	var err error
	if e.Current, err = version(now); err == nil {
		e.Previous, err = version(old)
	}
	return err
}

// LogSuffix returns the place, tuple and id of an entry of the log without reading the rest. It points into val.
func LogSuffix(val []byte) ([]byte, error) {
	if len(val) < logHead || val[0] != formatLog {
		return nil, errLog()
	}
	n := int(binary.BigEndian.Uint16(val[10:]))
	if logHead+n > len(val) {
		return nil, errLog()
	}
	return val[logHead : logHead+n : logHead+n], nil
}
