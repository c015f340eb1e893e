package mongoapi

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/expr"
)

// A computed result is stored as one sequence of bytes: its documents, one behind the other. Each part of the record
// has resultPart bytes of it, the last one the rest. So the place of the next document is a number of bytes, from which
// the part follows in which it begins. A document may lie in several parts.
//
// Example: a result has 300 KiB. Its parts have 96, 96, 96 and 12 KiB. A getMore at byte 100,000 reads the second part,
// and the third one when a document goes beyond the second.
const (
	// resultPart is the size of a part in bytes. It is below that from which on an engine over a network divides
	// values.
	resultPart = 96 << 10
	// resultPortion is how many bytes of a result are computed before they are stored, with one commit. A smaller
	// result, as nearly all are, is stored with the record, and stays in memory too.
	resultPortion = 42 * resultPart
	// maxStored is the largest result that is stored, except for its last document. It is as much as MongoDB lets a
	// stage hold in memory.
	maxStored = 100 << 20
	// maxAhead is the number of parts that a batch reads at once if it wants as much as it may have, or has read as
	// many before.
	maxAhead = 16
	// dropTime is the time in which what was stored of a result is removed when the rest fails. Otherwise it expires.
	dropTime = time.Second
)

// stored is a result in the parts of a record. It implements agg.Iter. A document is valid until the next call.
type stored struct {
	eng   *core.Engine
	id    int64 // of the cursor
	run   *expr.Run
	mem   *budget.Account // of buf
	size  int64           // of what is stored
	at    int64           // where the next document begins
	buf   []byte          // what was read, from there on to the end of a part
	taken int             // the length of the last document, which unread returns; 0: there is none
	ahead int             // how many parts the last read of this batch had, or the first one is to have
	rest  agg.Iter        // the documents behind what is stored; nil: there are none
}

// Next implements agg.Iter.
func (s *stored) Next() (value.Value, bool, error) {
	s.taken = 0
	if s.at == s.size {
		if s.rest == nil {
			return value.Undef(), false, nil
		}
		return s.rest.Next()
	}
	if err := s.read(4); err != nil {
		return value.Undef(), false, err
	}
	n := int64(binary.LittleEndian.Uint32(s.buf))
	if n < 5 || n > s.size-s.at {
		return value.Undef(), false, status.New(status.Corruption, "stored result with a document of %d bytes", n)
	}
	if err := s.read(int(n)); err != nil {
		return value.Undef(), false, err
	}
	d := value.ObjectOf(s.buf[:n:n])
	s.taken, s.at, s.buf = int(n), s.at+n, s.buf[n:]
	return d, true, nil
}

// begin begins a batch of n documents; n < 0: as many as it may have.
func (s *stored) begin(n int) {
	if s.ahead = 0; n < 0 {
		s.ahead = maxAhead
	}
}

// read makes n bytes available in buf, at most as many as there are. A batch that needs more and more parts reads more
// of them at once.
func (s *stored) read(n int) error {
	if n = int(min(int64(n), s.size-s.at)); len(s.buf) >= n {
		return nil
	}
	from := s.at + int64(len(s.buf))
	first, skip := from/resultPart, int(from%resultPart) // only without a buf there is something to skip
	s.ahead = min(max(2*s.ahead, 1), maxAhead)
	last := max((s.at+int64(n)+resultPart-1)/resultPart, first+int64(s.ahead))
	end := min(last*resultPart, s.size)
	room := len(s.buf) + int(end-from) + skip
	was := s.mem.Used()
	if room > freeReply {
		if err := s.mem.Grow(int64(room)); err != nil {
			return err
		}
	}
	parts := int((end+resultPart-1)/resultPart - first)
	b, ok, err := s.eng.RecordParts(s.run.Context(), append(make([]byte, 0, room), s.buf...), cursorRecord(s.id),
		int(first), parts)
	s.mem.Shrink(was)
	switch {
	case err != nil:
		return err
	case !ok: // the cursor was killed meanwhile
		return notFound(s.id)
	case len(b) != room:
		return status.New(status.Corruption, "stored result with parts of another size")
	}
	s.buf = b[skip:]
	return nil
}

// unread returns the last document to the result. It returns false if that isn't stored.
func (s *stored) unread() bool {
	if s.taken == 0 {
		return false
	}
	s.at -= int64(s.taken)
	s.buf, s.taken = nil, 0
	s.mem.Close()
	return true
}

// empty reports whether there are no more documents.
func (s *stored) empty() bool { return s.at == s.size && s.rest == nil }

// park releases the memory. What it held is read again.
func (s *stored) park() {
	s.buf, s.taken = nil, 0
	s.mem.Close()
}

// Close implements agg.Iter.
func (s *stored) Close() {
	s.park()
	s.at = s.size
	if s.rest != nil {
		s.rest.Close()
		s.rest = nil
	}
}

// publishResult computes the result of a cursor and stores it with its record. The record is written with its first
// parts: if this process ends meanwhile, it expires with all of them.
func (r *request) publishResult(c *cursor) (err error) {
	s := &stored{eng: r.s.eng, run: c.run, mem: r.s.eng.Budget().Open("result")}
	c.share.here = true // until it is complete
	defer func() {
		if err == nil {
			return
		}
		s.mem.Close()
		if c.share.record.Exists() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), dropTime)
			defer cancel()
			_, _ = r.s.eng.DropRecord(ctx, cursorRecord(c.id), c.share.record)
		}
	}()
	var buf []byte
	more := true
	for more && s.size+int64(len(buf)) <= maxStored {
		if len(buf) >= resultPortion {
			if err := r.write(c, partsOf(buf[:resultPortion])...); err != nil {
				return err
			}
			s.size += resultPortion
			buf = append(buf[:0], buf[resultPortion:]...)
		}
		var d value.Value
		if d, more, err = c.next(); err != nil {
			return failed(err)
		}
		if !more {
			break
		}
		was := cap(buf)
		if c.proj == nil {
			buf = append(buf, d.Bytes()...)
		} else if buf, err = c.proj.Append(buf, c.env, d); err != nil {
			return err
		}
		if n := cap(buf); n > was && n > freeReply {
			if err := s.mem.Grow(int64(n) - s.mem.Used()); err != nil {
				return err
			}
		}
	}
	c.proj = nil // only a single document has one, which has it behind it now
	whole := s.size == 0
	s.size += int64(len(buf))
	if c.share.here = more; more {
		s.rest = c.src
	} else {
		c.src.Close()
	}
	c.src = s
	if err := r.write(c, partsOf(buf)...); err != nil {
		return err
	}
	if s.id = c.id; whole {
		s.buf = buf
	} else {
		s.mem.Close()
	}
	return nil
}

// partsOf divides bytes of a result.
func partsOf(b []byte) (parts [][]byte) {
	for len(b) > 0 {
		n := min(len(b), resultPart)
		parts, b = append(parts, b[:n]), b[n:]
	}
	return parts
}
