package sqlapi

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// rangeByID returns a live partition by its id. For any other id the error is 410/1002. Clients then read the ranges
// again. A partition that another process has just split is found too, until a request here meets the split: its range
// is as before, and what is read of it is right.
func (c *call) rangeByID(ct *core.Container, id string) (core.Partition, error) {
	has := func(p core.Partition) bool { return p.ID == id }
	parts := ct.Known()
	i := slices.IndexFunc(parts, has)
	if i < 0 {
		var err error
		if parts, err = ct.Partitions(c.Ctx()); err != nil {
			return core.Partition{}, err
		}
		i = slices.IndexFunc(parts, has)
	}
	if i < 0 {
		return core.Partition{}, status.WithSub(status.Gone, status.SubPartitionKeyRangeGone, "The requested "+
			"partition key range is gone: %s.", clip(id))
	}
	return parts[i], nil
}

// span is a range of effective partition keys in the form of headers and pkranges: hexadecimal text, min inclusive, max
// exclusive.
type span struct{ min, max string }

// wholeSpan is the whole key space.
var wholeSpan = span{"", "FF"}

// spanOf returns the range to which the headers restrict a request: a partition by its id, and a part of it by
// effective partition keys. ok is false when there is no restriction.
func (c *call) spanOf(ct *core.Container) (s span, ok bool, err error) {
	s = wholeSpan
	if id := header(c.In, hRangeID); id != "" {
		if i := indexComma(id); i >= 0 { // "collectionRid,id"
			id = id[i+1:]
		}
		p, err := c.rangeByID(ct, id)
		if err != nil {
			return s, false, err
		}
		s, ok = span{p.Min, p.Max}, true
	}
	// Python 4.9 sends the end of one partition key's range in lower case.
	lo, hi := strings.ToUpper(header(c.In, hStartEPK)), strings.ToUpper(header(c.In, hEndEPK))
	if lo == "" && hi == "" {
		return s, ok, nil
	}
	if !isEPK(lo) || !isEPK(hi) || hi != "" && lo > hi {
		return s, false, badHeader("x-ms-start-epk", lo+" "+hi)
	}
	// the bounds may lie outside of the partition, so the range may still be empty
	if lo > s.min {
		s.min = lo
	}
	if hi != "" && hi < s.max {
		s.max = hi
	}
	return s, true, nil
}

// isEPK accepts hex text in upper case.
func isEPK(s string) bool {
	if len(s) > 256 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if ch := s[i]; (ch < '0' || ch > '9') && (ch < 'A' || ch > 'F') {
			return false
		}
	}
	return true
}

// restrict restricts a query to a span.
func restrict(q *exec.Query, s span) {
	q.Ranges = slices.Grow(q.Ranges, 1)
	q.Ranges = q.Ranges[:len(q.Ranges)+1]
	r := &q.Ranges[len(q.Ranges)-1]
	r.Min, r.Max = s.min, s.max
}

// keyByNumber returns the partition key and id of the item with the number of a resource id.
func (c *call) keyByNumber(ct *core.Container, number uint64) (core.PartitionKey, value.Value, error) {
	pk, id, ok, err := ct.KeyByNumber(c.Ctx(), number)
	if err == nil && !ok {
		err = errNotFound
	}
	return pk, id, err
}
