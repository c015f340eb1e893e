package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
)

// A record is what an API keeps in a store that several processes share, so that another process can go on with what
// one has begun: the position of a cursor, the result of a write that its client may repeat. Its content is opaque to
// the core. A local store has only those that must outlive its process (Mark).
//
// A record changes under the precondition that it is what was read. Each value has a random version, so no value
// appears twice, and an unknown outcome is found out by reading.
//
// A record that nobody has written for its time is removed by the process that has the lease of this work. That process
// measures the time with its own monotonic clock, from the moment at which it has first seen the version.
//
// Example: process A keeps cursor 7 with version 11. B reads it, returns a batch to the client, and replaces version 11
// by 12. A, which is asked at the same time, can't replace version 11 any more. Nobody asks for the cursor again. C has
// the lease, sees version 12 first at 100 s, and removes it at 700 s.

// RecordName names a record.
type RecordName struct {
	Kind byte // assigned by the facade; stored
	Name string
}

func (n RecordName) key() []byte { return keys.AppendRecord(nil, n.Kind, []byte(n.Name)) }

func (n RecordName) partKey(number uint32) []byte {
	return keys.AppendRecordPart(nil, n.Kind, []byte(n.Name), number)
}

// Record is the value of a record as it was read or written. The zero value stands for a record that doesn't exist.
type Record struct {
	Data   []byte // the API's
	stored []byte
	parts  uint32 // that are stored beside it
}

// Exists reports whether there is a record.
func (r *Record) Exists() bool { return r.stored != nil }

// Clone returns a copy with memory of its own.
func (r *Record) Clone() Record {
	if r.stored == nil {
		return Record{}
	}
	c := Record{stored: bytes.Clone(r.stored), parts: r.parts}
	c.Data = c.stored[len(r.stored)-len(r.Data):]
	return c
}

// Same reports whether two values are the same version of a record.
func (r *Record) Same(as *Record) bool { return bytes.Equal(r.stored, as.stored) }

// The layout of a stored record: format u8, version u64, seconds u32 without a write after which it is removed, data.
// In the second format the number of its parts u32 is before the data. A part is format u8, data. docs/formats.md
// describes them.
const (
	formatRecord = 1
	formatParted = 2
	recordHead   = 1 + 8 + 4
)

// newRecord returns a new version of a record.
func (s *Store) newRecord(data []byte, idle time.Duration, parts uint32) Record {
	b := make([]byte, 0, recordHead+4+len(data))
	b = binary.BigEndian.AppendUint64(append(b, formatRecord), uint64(s.clk.Int63()))
	b = binary.BigEndian.AppendUint32(b, uint32(idle/time.Second))
	if parts > 0 {
		b[0] = formatParted
		b = binary.BigEndian.AppendUint32(b, parts)
	}
	b = append(b, data...)
	return Record{Data: b[len(b)-len(data):], stored: b, parts: parts}
}

// parseRecord takes a stored value; nil: there is no record.
func parseRecord(b []byte) (Record, error) {
	switch {
	case b == nil:
		return Record{}, nil
	case len(b) >= recordHead && b[0] == formatRecord:
		return Record{Data: b[recordHead:], stored: b}, nil
	case len(b) >= recordHead+4 && b[0] == formatParted:
		return Record{Data: b[recordHead+4:], stored: b, parts: binary.BigEndian.Uint32(b[recordHead:])}, nil
	}
	return Record{}, status.New(status.Corruption, "record of unknown format")
}

// was returns the precondition that a record is still the one that was read.
func (r *Record) was(key []byte) kv.Precondition {
	if r.stored == nil {
		return kv.Precondition{Key: key, Expect: kv.Absent}
	}
	return kv.Precondition{Key: key, Expect: kv.Equal, Value: r.stored}
}

// ReadRecord returns a record.
func (s *Store) ReadRecord(ctx context.Context, n RecordName) (Record, error) {
	b, err := orNil(s.eng.Get(ctx, nil, n.key()))
	if err != nil {
		return Record{}, err
	}
	return parseRecord(b)
}

// ReadParts appends n parts of a record to dst, beginning with one of them. ok is false if one is missing: the record
// was removed meanwhile.
func (s *Store) ReadParts(ctx context.Context, dst []byte, name RecordName, first, n int) (_ []byte, ok bool,
	err error) {
	snap, err := s.eng.Snapshot(ctx)
	if err != nil {
		return dst, false, translate(err)
	}
	defer snap.Close()
	var vals kv.Values
	wanted := make([][]byte, n)
	for i := range wanted {
		wanted[i] = name.partKey(uint32(first + i))
	}
	if err := snap.GetMany(&vals, wanted); err != nil {
		return dst, false, translate(err)
	}
	for i := range wanted {
		switch b := vals.At(i); {
		case b == nil:
			return dst, false, nil
		case b[0] != formatRecord:
			return dst, false, status.New(status.Corruption, "part of a record of unknown format")
		default:
			dst = append(dst, b[1:]...)
		}
	}
	return dst, true, nil
}

// WriteRecord replaces a record by one with this content, if it is still what it was. ok is false if it isn't. idle is
// the time without a write after which the record is removed, at least a second. The new parts follow those that the
// record has. They are there if, and only if, the record says so: so whoever removes it knows what to remove with it,
// also if the process that writes it ends between its parts.
func (s *Store) WriteRecord(ctx context.Context, n RecordName, was Record, data []byte, idle time.Duration,
	parts ...[]byte) (now Record, ok bool, err error) {
	now = s.newRecord(data, idle, was.parts+uint32(len(parts)))
	var b kv.Batch
	b.Put(n.key(), now.stored)
	var val []byte
	for i, part := range parts {
		val = append(append(val[:0], formatRecord), part...)
		b.Put(n.partKey(was.parts+uint32(i)), val)
	}
	ok, err = s.changeRecord(ctx, n, was, now, &b)
	return now, ok, err
}

// DropRecord removes a record and its parts, if the record is still what it was. ok is false if it isn't.
func (s *Store) DropRecord(ctx context.Context, n RecordName, was Record) (ok bool, err error) {
	b := kv.Batch{Frees: true}
	was.remove(n, &b)
	return s.changeRecord(ctx, n, was, Record{}, &b)
}

// remove removes a record with its parts.
func (r *Record) remove(n RecordName, b *kv.Batch) {
	b.Delete(n.key())
	for i := range r.parts {
		b.Delete(n.partKey(i))
	}
}

// changeRecord writes a batch that makes a record what it is to be now. If the outcome is unknown it looks, and writes
// the same batch again: of two such batches only one is applied, because each needs the record as it was. The error is
// UnknownOutcome if others have changed the record since.
func (s *Store) changeRecord(ctx context.Context, n RecordName, was, now Record, b *kv.Batch) (bool, error) {
	pre := []kv.Precondition{was.was(n.key())}
	unsure := false
	for range maxFinds {
		w, err := s.eng.Write(ctx, b, pre)
		if err == nil {
			err = w.Wait()
		}
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, kv.ErrUnknownOutcome):
			unsure = true
		case !errors.Is(err, kv.ErrConflict):
			if unsure {
				err = kv.ErrUnknownOutcome // of the batch before
			}
			return false, translate(err)
		case !unsure:
			return false, nil
		}
		late, cancel := s.graced(ctx)
		is, err := s.ReadRecord(late, n)
		cancel()
		if err != nil {
			return false, translate(kv.ErrUnknownOutcome)
		}
		if is.Same(&now) {
			return true, nil
		}
		if !is.Same(&was) { // it may have been applied before others have changed the record
			return false, translate(kv.ErrUnknownOutcome)
		}
		time.Sleep(findRest)
	}
	return false, translate(kv.ErrUnknownOutcome)
}

// Records gives the records of a kind whose names have n bytes and begin with a prefix. The record is valid during the
// call of f.
func (s *Store) Records(ctx context.Context, kind byte, n int, prefix string, f func(RecordName, Record) error) error {
	snap, err := s.eng.Snapshot(ctx)
	if err != nil {
		return translate(err)
	}
	defer snap.Close()
	lo, hi := keys.RecordKindBounds(kind, n, []byte(prefix))
	return each(snap, lo, hi, func(key, val []byte) error {
		_, name, former, ok := keys.ParseRecord(key)
		if !ok || former {
			return nil
		}
		r, err := parseRecord(val)
		if err != nil {
			return err
		}
		return f(RecordName{kind, string(name)}, r)
	})
}

// Attached is a record that a write reads together with its item, and changes in the same commit. So if the record is
// there, the write was made. A write that changes nothing leaves the record as it is. It has no parts. The engine must
// be a shared one.
//
// Example: a client repeats an insert, at another process, because it got no reply. The first attempt has stored the
// item and the record. The second one's Check gets the record, and returns an error that ends the write.
type Attached struct {
	Name RecordName
	// Check is called before anything is decided. It may be called more than once. Its error ends the write.
	Check func(was Record) error
	// Next returns the record's new content, nil if it is to be removed. It is called after the write was decided.
	Next func() []byte
	Idle time.Duration // as for WriteRecord
}

// attached is the state of an Attached in one attempt of a write.
type attached struct {
	*Attached
	was, now Record
}

// attach makes a record the one of a change, and takes its stored value.
func (ch *change) attach(a *Attached, stored []byte) error {
	ch.with = &attached{Attached: a}
	return ch.checkAttached(stored)
}

// checkAttached takes the stored record of a write.
func (ch *change) checkAttached(b []byte) (err error) {
	a := ch.with
	if a.was, err = parseRecord(bytes.Clone(b)); err != nil {
		return err
	}
	return a.Check(a.was)
}

// decideAttached makes the record's next version.
func (c *Container) decideAttached(a *attached) {
	a.now = Record{}
	if data := a.Next(); data != nil {
		a.now = c.st.newRecord(data, a.Idle, 0)
	}
}

// attach adds the records of a part's changes to the commit.
func (d *draft) attach(p *part) {
	for i := range p.chs {
		a := p.chs[i].with
		if a == nil {
			continue
		}
		key := a.Name.key()
		if d.c.st.others {
			d.pre = append(d.pre, a.was.was(key))
		}
		switch {
		case a.now.Exists():
			d.late.Put(key, a.now.stored)
		case a.was.Exists():
			d.late.Delete(key)
		}
	}
}

// RecordSights is what a process has seen of the records: the version of each, and since when. The zero value has seen
// nothing.
type RecordSights map[string]recordSight

type recordSight struct {
	version uint64
	since   time.Duration // by Clock.Elapsed
}

// Limits of one commit that removes records. The second one counts the keys that it removes. The parts of one record
// may exceed it.
const (
	maxDropped     = 256
	maxDroppedKeys = 4096
)

// ExpireRecords removes records that nobody has written for their time, with their parts. It does nothing if another
// process has the lease.
func (s *Store) ExpireRecords(ctx context.Context, seen RecordSights) (RecordSights, error) {
	l, err := s.leases.Try(ctx, lease.Name{Kind: lease.Records})
	if l == nil {
		return nil, translate(err) // another process looks; this one begins again if it ever gets the lease
	}
	defer l.Release()
	snap, err := s.eng.Snapshot(l.Context())
	if err != nil {
		return seen, translate(err)
	}
	defer snap.Close()
	x := expiry{s: s, ctx: l.Context(), now: s.clk.Elapsed(), seen: seen, next: RecordSights{},
		b: kv.Batch{Frees: true}}
	lo, hi := keys.RecordBounds()
	err = each(snap, lo, hi, x.look)
	return x.next, errors.Join(err, x.flush())
}

// expiry is one look at all records.
type expiry struct {
	s          *Store
	ctx        context.Context
	now        time.Duration
	seen, next RecordSights // of the look before, and of this one
	last       []byte       // the key of the last record
	b          kv.Batch     // removes records that have expired
	pre        []kv.Precondition
}

// look looks at a record, or at what an earlier version has written beside it.
func (x *expiry) look(key, val []byte) error {
	kind, name, former, ok := keys.ParseRecord(key)
	switch {
	case !ok:
		return nil
	case former && bytes.Equal(x.last, key[:len(key)-1]):
		return nil
	case former: // its record is gone
		x.b.Delete(key)
		x.pre = append(x.pre, kv.Precondition{Key: bytes.Clone(key[:len(key)-1]), Expect: kv.Absent})
		return x.flush()
	}
	x.last = append(x.last[:0], key...)
	r, err := parseRecord(val)
	if err != nil {
		return err
	}
	version := binary.BigEndian.Uint64(r.stored[1:])
	idle := time.Duration(binary.BigEndian.Uint32(r.stored[9:])) * time.Second
	sight, ok := x.seen[string(key)]
	if !ok || sight.version != version {
		sight = recordSight{version, x.now}
	}
	if x.next[string(key)] = sight; x.now-sight.since < idle {
		return nil
	}
	r.remove(RecordName{kind, string(name)}, &x.b)
	x.pre = append(x.pre, kv.Precondition{Key: bytes.Clone(key), Expect: kv.Equal, Value: bytes.Clone(val)})
	if len(x.pre) < maxDropped && x.b.Len() < maxDroppedKeys {
		return nil
	}
	return x.flush()
}

// flush removes what has been found.
func (x *expiry) flush() error {
	if x.b.Len() == 0 {
		return nil
	}
	w, err := x.s.eng.Write(x.ctx, &x.b, x.pre)
	if err == nil {
		err = w.Wait()
	}
	if errors.Is(err, kv.ErrConflict) || errors.Is(err, kv.ErrUnknownOutcome) {
		err = nil // somebody has used one of them: the next turn looks again
	}
	x.b.Reset()
	x.b.Frees, x.pre = true, x.pre[:0]
	return translate(err)
}
