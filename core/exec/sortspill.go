package exec

import (
	"encoding/binary"
	"slices"

	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// When the memory of a sort is used up, it sorts its rows, writes them to a file as a run, and continues. At the end it
// merges the runs. Rows with small items include them: writing and reading a kilobyte in sequence costs less than a
// look-up. For a large item only the identity is written. If temporary files use much of the disk's room, only
// identities are written.
//
// Example: rows with the keys 3, 1 fill the memory and are written as the run (1, 3). The rows 4, 2 become the run (2,
// 4). The merge gives 1, 2, 3, 4.
const (
	carriedItem  = 4 << 10 // largest item in bytes that is written with its row
	carriedShare = 4       // items are written while the disk has room for so many times what all queries have there
)

// spilled is the state of a sort that has written files.
type spilled struct {
	runs   *spill.Runs[*sorted]
	rows   *spill.Merged[*sorted] // nil while the source is read
	ahead  *sorted                // the next row, after look
	given  int                    // rows that were given
	last   *sorted                // the last row of a window, for again
	err    error                  // of a write
	absent bool                   // some rows have no items
}

// carries reports whether the item of a row is held so that it is written with the row.
func (d *spilled) carries(s *sorter, r *row) bool {
	return s.b.rows.space != nil && len(r.item.Doc) <= carriedItem
}

// makeRoom is called when the memory of the sort is used up.
func (s *sorter) makeRoom() {
	if s.src == nil || s.b.rows.space == nil {
		if s.disk.rows == nil {
			s.dropItems()
		}
		return
	}
	s.spill()
}

// spill writes the rows in memory to a run and removes them from memory. Its error is kept for the next call of add.
func (s *sorter) spill() {
	rows := append(s.list, s.heap.list...)
	if len(rows) == 0 || s.disk.err != nil {
		return
	}
	s.list = rows
	if s.disk.err = s.order(); s.disk.err != nil {
		return
	}
	if s.disk.runs == nil {
		s.disk.runs = spill.NewRuns(s.b.rows.space, s.acct, spill.Codec[*sorted]{
			Append: s.appendRow, Decode: s.readRow, Compare: s.b.compare})
	}
	s.disk.err = s.disk.runs.Write(s.b.rows.ctx, slices.Values(s.list))
	s.forget()
	s.thin = s.thin || s.b.rows.space.Spare()/carriedShare < s.b.rows.space.Used()
}

// forget removes the rows from memory.
func (s *sorter) forget() {
	s.acct.Shrink(int64(s.size + s.keyB))
	clear(s.list)
	s.list, s.heap.list, s.size, s.keyB = s.list[:0], nil, 0, 0
}

// appendRow appends the encoding of a row: number, number of the slot plus one, keys, then 1 and the item, or 0 and the
// identity.
func (s *sorter) appendRow(dst []byte, x *sorted) []byte {
	dst = binary.AppendUvarint(dst, x.number)
	n := 0
	if x.slot != nil {
		n = x.slot.Number() + 1
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for i := range x.keys {
		dst = value.AppendTyped(dst, x.keys[i])
	}
	if x.item != nil && len(x.item.Doc) <= carriedItem {
		return store.AppendCarried(append(dst, 1), x.item)
	}
	s.disk.absent = true
	ident := x.ident
	if x.item != nil {
		ident = x.item.Identity()
	}
	return append(append(dst, 0), ident...)
}

// readRow reads what appendRow has written.
func (s *sorter) readRow(b []byte) (*sorted, error) {
	bad := status.New(status.Corruption, "A row in a temporary file is damaged.")
	x := &sorted{}
	r := reader{b: b}
	x.number = r.uvarint()
	slots := s.b.view.Slots()
	switch n := r.uvarint(); {
	case n > uint64(len(slots)):
		return nil, bad
	case n > 0:
		x.slot = &slots[n-1]
	}
	if n := len(s.b.q.OrderBy); n > 0 {
		x.keys = make([]value.Value, n)
	}
	for i := range x.keys {
		var ok bool
		if x.keys[i], r.b, ok = value.ReadTyped(r.b); !ok {
			return nil, bad
		}
	}
	kind := r.take(1)[0]
	if r.bad {
		return nil, bad
	}
	if kind == 0 {
		x.ident = r.b
		return x, nil
	}
	var err error
	x.item, err = store.ReadCarried(r.b)
	return x, err
}

// merge ends the input of a sort that has spilled. It writes the rows in memory too, and begins the merge after the
// position.
func (s *sorter) merge() error {
	if s.spill(); s.disk.err != nil {
		return s.disk.err
	}
	if n := s.bound(); n > 0 && n == s.window && s.disk.runs.Len() > int64(n) {
		s.more = true
	}
	skip := 0
	if p := s.pos; p != nil && p.cut {
		var err error
		if skip, err = s.findCut(p); err != nil {
			return err
		}
	}
	var err error
	if s.disk.rows, err = s.disk.runs.Merge(s.b.rows.ctx); err != nil {
		return err
	}
	for ; skip > 0; skip-- {
		if _, err := s.take(); err != nil {
			return err
		}
	}
	return nil
}

// findCut does what resume does, for rows in files. It returns the number of rows that come before the ones to give.
func (s *sorter) findCut(p *position) (int, error) {
	rows, err := s.disk.runs.Merge(s.b.rows.ctx)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	pos := &sorted{keys: p.keys}
	first := -1
	for n := 0; ; n++ {
		x, ok, err := rows.Next()
		if err == nil {
			err = s.b.poll()
		}
		if err != nil {
			return 0, err
		}
		if ok && x.number == p.number && hashKeys(x.keys) == p.hash {
			return n + 1, nil
		}
		c := 1
		if ok {
			y := x
			if p.partial {
				y = s.cutLike(x, p)
			}
			c = s.b.compareKeys(y, pos)
		}
		if c >= 0 && first < 0 {
			first = n
		}
		if c > 0 {
			return first, nil
		}
	}
}

// look makes sure that the next row is read. It returns false at the end, or at the end of the window.
func (s *sorter) look() (bool, error) {
	d := &s.disk
	if n := s.bound(); n > 0 && d.given >= n {
		return false, nil
	}
	if d.ahead == nil {
		x, ok, err := d.rows.Next()
		if !ok || err != nil {
			return false, err
		}
		d.ahead = x
	}
	return true, nil
}

// take returns the next row, nil at the end. The row is valid until the next look.
func (s *sorter) take() (*sorted, error) {
	if ok, err := s.look(); !ok || err != nil {
		return nil, err
	}
	d := &s.disk
	x := d.ahead
	d.ahead = nil
	if d.given++; s.more && d.given == s.bound() {
		d.last = &sorted{number: x.number, keys: make([]value.Value, len(x.keys))}
		for i := range x.keys {
			d.last.keys[i] = x.keys[i].Clone()
		}
	}
	return x, nil
}

// shelve writes the remaining rows to files if more than most bytes of them are in memory.
func (s *sorter) shelve(most int64) error {
	if !s.began || s.more || s.acct.Used() <= most {
		return nil
	}
	if s.disk.rows != nil || s.b.rows.space == nil {
		return status.New(status.MemoryLimit, "The rows of the sort hold more than %d bytes.", most)
	}
	s.list = slices.Delete(s.list, 0, s.at)
	s.at = 0
	if s.spill(); s.disk.err != nil {
		return s.disk.err
	}
	var err error
	s.disk.rows, err = s.disk.runs.Merge(s.b.rows.ctx)
	return err
}

// apart reports whether the remaining rows need nothing from the view.
func (s *sorter) apart() bool {
	return s.src == nil && s.began && !s.more && !s.large && !s.disk.absent
}

// closeFiles removes the files of the sort.
func (s *sorter) closeFiles() {
	s.disk.rows.Close()
	s.disk.runs.Close()
	s.disk = spilled{}
}
