package feed

import "bytes"

// A position may have several LSNs in the placements of one slot: two slots that were read up to different LSNs have
// been joined since. Then each part of the slot is read on its own, so that no change comes again: every part walks the
// slot's feed and takes the entries of its placements. When the parts have come to the same LSN they are one again.
//
// Example: the slots 00 to 40 and 40 to 80 were read up to LSN 7 and 9, and are one slot now. Its parts 00 to 40 and 40
// to 80 go on after 7 and 9.

// cut cuts the pieces where the position's LSN changes, and sets how far each was read.
func (p *Position) cut(in []piece) (out []piece) {
	out = make([]piece, 0, len(in))
	for i := range in {
		at := in[i]
		lo, hi := at.ends()
		for k := range p.steps {
			s := &p.steps[k]
			if bytes.Compare(s.min, lo) <= 0 || hi != nil && bytes.Compare(s.min, hi) >= 0 {
				continue
			}
			front := at
			front.hi = s.min
			front.seen = p.least(lo, s.min)
			out = append(out, front)
			at.lo, at.from, lo = s.min, s.min, s.min
		}
		at.seen = p.least(lo, hi)
		out = append(out, at)
	}
	return out
}

// ends returns the suffixes [lo, hi) of the piece; a nil hi is open.
func (p *piece) ends() (lo, hi []byte) {
	if lo, hi = p.lo, p.hi; lo == nil {
		lo = p.slot.Min()
	}
	if hi == nil {
		hi = p.slot.Max()
	}
	return lo, hi
}

// begin returns the placement at which the piece begins in a position.
func (p *piece) begin() []byte {
	if p.from != nil {
		return p.from
	}
	return p.slot.Min()
}
