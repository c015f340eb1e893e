package store

import (
	"bytes"
	"context"

	"github.com/orrerydb/orrery/core/keys"
)

// Median returns the first placement of a logical partition that divides the bytes of the placements [min, max) into
// about equal halves; a nil max is open. ok is false when there are less than two placements with items. It reads the
// heads of the logical partitions, or the items where the partition key is the id.
func (c *Container) Median(ctx context.Context, min, max []byte) (at []byte, ok bool, err error) {
	v, err := c.View(ctx)
	if err != nil {
		return nil, false, err
	}
	defer v.Close()
	var s samples
	for i := range v.slots {
		sl := &v.slots[i]
		if sl.max != nil && bytes.Compare(sl.max, min) <= 0 || max != nil && bytes.Compare(sl.min, max) >= 0 {
			continue
		}
		if err := v.sample(ctx, &s, sl, min, max); err != nil {
			return nil, false, err
		}
	}
	at, ok = s.middle()
	return at, ok, nil
}

// sample adds the logical partitions of a slot within [min, max).
func (v *View) sample(ctx context.Context, s *samples, sl *ViewSlot, min, max []byte) error {
	kind, n, read := keys.KindLogical, v.c.placeLen(), 0
	if v.c.Def().KeyIsID() {
		kind = keys.KindItem
	}
	lo, hi := keys.KindBounds(sl.key, kind)
	if bytes.Compare(min, sl.min) > 0 {
		lo = append(lo, min...)
	}
	if max != nil && (sl.max == nil || bytes.Compare(max, sl.max) < 0) {
		hi = append(keys.AppendPrefix(nil, sl.key, kind), max...)
	}
	return v.walk(lo, hi, func(key, val []byte) (bool, error) {
		if read++; read&1023 == 0 && ctx.Err() != nil {
			return false, translate(ctx.Err())
		}
		size := int64(len(key) + len(val))
		if kind == keys.KindLogical {
			var h LogicalHead
			if err := h.decode(val); err != nil {
				return false, err
			}
			size = h.Bytes
		}
		s.add(key[keys.PrefixLen:keys.PrefixLen+n], size)
		return true, nil
	})
}

// maxSamples bounds the placements that samples keeps.
const maxSamples = 4096

// samples keeps placements with the bytes before them. When there are too many it drops every second one, and from then
// on only keeps placements that are further apart.
type samples struct {
	list  []sample
	bytes int64
	apart int64 // least number of bytes between two kept placements
	last  []byte
}

// sample is a placement and the bytes of all placements before it.
type sample struct {
	place  []byte
	before int64
}

// add adds bytes of a placement. Placements come in order.
func (s *samples) add(place []byte, size int64) {
	if s.last == nil || !bytes.Equal(s.last, place) {
		s.last = append(s.last[:0], place...)
		if n := len(s.list); n < 2 || s.bytes-s.list[n-1].before >= s.apart {
			s.list = append(s.list, sample{bytes.Clone(place), s.bytes})
		}
	}
	s.bytes += size
	if len(s.list) < maxSamples {
		return
	}
	kept := s.list[:2] // the first two, so that there always is a placement to divide at
	for i := 3; i < len(s.list); i += 2 {
		kept = append(kept, s.list[i])
	}
	s.list, s.apart = kept, max(2*s.apart, s.bytes/maxSamples)
}

// middle returns the placement with about half of all bytes before it. It is never the first one.
func (s *samples) middle() (place []byte, ok bool) {
	best := int64(-1)
	for i := 1; i < len(s.list); i++ {
		if off := max(s.bytes-2*s.list[i].before, 2*s.list[i].before-s.bytes); best < 0 || off < best {
			best, place = off, s.list[i].place
		}
	}
	return place, best >= 0
}
