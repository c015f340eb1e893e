package sqlapi

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// rangesETag returns the etag of a container's partition map: the greatest id and the number of live ranges. These
// identify one version of the map, because ids are never reused and each split or merge creates new ones. Example:
// ranges 1, 2 and 3 have the etag "3-3"; after a split of 3 into 4 and 5 it is "5-4".
func rangesETag(parts []core.Partition) string {
	last := 0
	for _, p := range parts {
		if n, err := strconv.Atoi(p.ID); err == nil && n > last {
			last = n
		}
	}
	return strconv.Itoa(last) + "-" + strconv.Itoa(len(parts))
}

// listRanges answers the live partition key ranges, sorted and contiguous. With A-IM and the etag of an earlier reply
// it is an incremental read: 304 when nothing has changed, else only the new ranges. Without the 304 the Go SDK never
// stops reading.
func listRanges(c *call) error {
	ct, err := c.container(status.SubOwnerNotFound)
	if err != nil {
		return err
	}
	parts, err := ct.Partitions(c.Ctx())
	if err != nil {
		return err
	}
	live, etag := len(parts), rangesETag(parts)
	c.setContainer(ct)
	c.setETag(etag)
	since := header(c.In, hIfNoneMatch)
	if since != "" && since != "*" && strings.EqualFold(header(c.In, hAIM), "Incremental feed") {
		if trimETag(since) == etag {
			return errNotModified
		}
		parts = newerRanges(parts, trimETag(since))
	}
	return c.rangeFeed(ct, parts, live).write(0, len(parts), math.MaxInt) // always whole
}

// rangeFeed starts the feed of a container's ranges. live is how many there are.
func (c *call) rangeFeed(ct *core.Container, parts []core.Partition, live int) *feedReply {
	rid, places := ct.RID(), make([]int, len(parts))
	for i := range places {
		places[i] = i
	}
	return c.feed(ridText(rid[:]), "PartitionKeyRanges", rowsOf(places, func(i int) (uint64, func() ([]byte, error)) {
		return uint64(i) + 1, func() ([]byte, error) { return appendRange(nil, ct, parts[i], live), nil }
	}))
}

// newerRanges returns the ranges that are newer than an etag. For an unknown etag it returns all.
func newerRanges(parts []core.Partition, etag string) []core.Partition {
	text, _, _ := strings.Cut(etag, "-")
	last, err := strconv.Atoi(text)
	if err != nil {
		return parts
	}
	var out []core.Partition
	for _, p := range parts {
		if n, err := strconv.Atoi(p.ID); err != nil || n > last {
			out = append(out, p)
		}
	}
	return out
}

// appendRange appends one range. Its fields have all spellings that SDKs read: Go reads lsn, others _lsn.
func appendRange(dst []byte, ct *core.Container, p core.Partition, live int) []byte {
	n, _ := strconv.ParseUint(p.ID, 10, 32)
	coll := ct.RID()
	rid := string(wire.AppendChildRID(nil, coll, n, wire.RIDRange))
	dst = append(dst, `{"_rid":"`...)
	dst = append(dst, rid...)
	dst = append(dst, `","id":`...)
	dst = json.AppendString(dst, p.ID)
	dst = append(dst, `,"_etag":`...)
	dst = appendQuotedETag(dst, ct.ETag())
	dst = append(dst, `,"minInclusive":`...)
	dst = json.AppendString(dst, p.Min)
	dst = append(dst, `,"maxExclusive":`...)
	dst = json.AppendString(dst, p.Max)
	dst = append(dst, `,"ridPrefix":`...)
	dst = strconv.AppendUint(dst, n, 10)
	dst = append(dst, `,"_self":"`...)
	dst = appendContainerSelf(dst, coll)
	dst = append(dst, "pkranges/"...)
	dst = append(dst, rid...)
	dst = append(dst, `/","throughputFraction":`...)
	dst = strconv.AppendFloat(dst, 1/float64(live), 'g', -1, 64)
	dst = append(dst, `,"status":"online","parents":[`...)
	for i, a := range p.Parents {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = json.AppendString(dst, a)
	}
	dst = append(dst, `],"ownedArchivalPKRangeIds":[`...)
	if k := len(p.Parents); k > 0 {
		dst = json.AppendString(dst, p.Parents[k-1])
	}
	dst = append(dst, `],"_ts":`...)
	dst = strconv.AppendInt(dst, ct.TS(), 10)
	dst = append(dst, `,"lsn":`...)
	dst = strconv.AppendInt(dst, p.LSN, 10)
	dst = append(dst, `,"_lsn":`...)
	dst = strconv.AppendInt(dst, p.LSN, 10)
	return append(dst, '}')
}

// createRange refuses the request: only the server creates ranges.
func createRange(c *call) error {
	c.errorBody("MethodNotAllowed", "Partition key ranges can't be made.", nil)
	return c.send(http.StatusMethodNotAllowed)
}

// queryRanges answers a query over the ranges.
func queryRanges(c *call) error {
	ct, err := c.container(status.SubOwnerNotFound)
	if err != nil {
		return err
	}
	parts, err := ct.Partitions(c.Ctx())
	if err != nil {
		return err
	}
	return c.rangeFeed(ct, parts, len(parts)).query()
}

// readRange answers one range, named by its id or resource id.
func readRange(c *call) error {
	ct, err := c.container(status.SubOwnerNotFound)
	if err != nil {
		return err
	}
	parts, err := ct.Partitions(c.Ctx())
	if err != nil {
		return err
	}
	name := c.Param("id")
	for _, p := range parts {
		n, _ := strconv.ParseUint(p.ID, 10, 32)
		if p.ID == name || string(wire.AppendChildRID(nil, ct.RID(), n, wire.RIDRange)) == name {
			c.Out = appendRange(c.Out[:0], ct, p, len(parts))
			return c.send(http.StatusOK)
		}
	}
	return errNotFound
}
