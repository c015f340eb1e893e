package sqlapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// maxFeedSteps bounds how many pages of the core one reply looks through for items that a filter (a partition key, a part
// of a range, a time) lets pass. A reply may be empty with a moved position.
const maxFeedSteps = 64

// changeFeed answers the latest-version change feed: the items written after a position, in the order of their last write.
// The position is the etag of the reply before; 304 says that there is nothing new, and carries an etag too.
func changeFeed(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	if !strings.EqualFold(header(c.In, hAIM), "Incremental feed") {
		return status.New(status.NotSupported, "Change feeds other than the incremental (latest version) one are not supported by this server.")
	}
	var room [maxKeyPaths]value.Value
	s, err := c.scopeOf(ct, room[:0])
	if err != nil {
		return err
	}
	size, err := c.maxItems(defaultPage)
	if err != nil {
		return err
	}
	pos, err := feedStart(header(c.In, hIfNoneMatch), ct)
	if err != nil {
		return err
	}
	since, err := feedSince(header(c.In, hIfModifiedSince))
	if err != nil {
		return err
	}
	partition := feedPartition(ct, &s)
	show := appendFeedItem
	if header(c.In, hWireFormat) == wrappedFormat {
		show = appendFeedChange
	}
	coll := ct.RID()
	c.Out = c.startDocuments(coll)
	n, bytes := 0, 0
	for range maxFeedSteps {
		page, err := ct.ChangeFeed(c.Ctx(), partition, pos, size-n)
		if err != nil {
			return err
		}
		pos = page.Next
		for _, it := range page.Items {
			bytes += len(it.Doc)
			if it.TS() < since || !inScope(ct, &s, it) {
				continue
			}
			if n > 0 {
				c.Out = append(c.Out, ',')
			}
			c.Out = show(c.Out, ct, it)
			n++
			if err := c.Hold(len(c.Out)); err != nil {
				return err
			}
		}
		if !page.More || n >= size || len(c.Out) >= maxReply {
			break
		}
	}
	c.setETag(pos.String())
	c.setScope(ct, &s)
	c.Charge = ru.Query(1, 0, n, bytes)
	if n == 0 {
		return c.send(http.StatusNotModified)
	}
	return c.endDocuments(n)
}

// feedStart reads where the feed goes on: nothing is the beginning, * is now, anything else an etag of ours.
func feedStart(ifNoneMatch string, ct *core.Container) (feed.Position, error) {
	switch ifNoneMatch {
	case "":
		return feed.Start(), nil
	case "*":
		return feed.After(ct.LSN()), nil
	}
	return feed.Parse(trimETag(ifNoneMatch))
}

// feedSince reads a start time in seconds; 0 when there is none. Clients write the zone as GMT or UTC.
func feedSince(v string) (int64, error) {
	if v == "" {
		return 0, nil
	}
	t, err := http.ParseTime(strings.Replace(v, " UTC", " GMT", 1))
	if err != nil {
		if t, err = time.Parse(time.RFC3339, v); err != nil {
			return 0, badHeader("If-Modified-Since", v)
		}
	}
	return t.Unix(), nil
}

// feedPartition names the one physical partition that a feed is restricted to; "" when there is none or more than one.
func feedPartition(ct *core.Container, s *scope) string {
	if len(s.pk) == len(ct.Spec().PartitionKey.Paths) {
		if p, err := ct.PartitionOf(s.pk); err == nil {
			return p.ID
		}
	}
	if s.ranged {
		for _, p := range ct.Partitions() {
			if s.span.min >= p.Min && s.span.max <= p.Max {
				return p.ID
			}
		}
	}
	return ""
}

// inScope reports whether an item is under the partition key and in the range that a feed is restricted to.
func inScope(ct *core.Container, s *scope, it *core.Item) bool {
	if s.pk == nil && !s.ranged {
		return true
	}
	pk := it.PK()
	if s.pk != nil && !sameKey(s.pk, pk[:min(len(s.pk), len(pk))]) {
		return false
	}
	if !s.ranged {
		return true
	}
	text := core.EPKText(ct.Spec().PartitionKey, pk)
	return text >= s.span.min && text < s.span.max
}

// appendFeedItem appends an item with the LSN of its last write, which only the change feed shows.
func appendFeedItem(dst []byte, ct *core.Container, it *core.Item) []byte {
	dst = appendShown(dst, ct, it)
	dst = append(dst[:len(dst)-1], `,"_lsn":`...)
	dst = strconv.AppendInt(dst, it.LSN, 10)
	return append(dst, '}')
}

// wrappedFormat is the wire format under which a change is an object that has the item in it. Java's newer change feed
// processor asks for it in the incremental mode too.
const wrappedFormat = "2021-09-15"

// appendFeedChange appends an item as the current state of a change. What kind of write made it is not told: the feed of the
// latest version doesn't know.
func appendFeedChange(dst []byte, ct *core.Container, it *core.Item) []byte {
	dst = append(dst, `{"current":`...)
	dst = appendFeedItem(dst, ct, it)
	dst = append(dst, `,"metadata":{"lsn":`...)
	dst = strconv.AppendInt(dst, it.LSN, 10)
	dst = append(dst, `,"crts":`...)
	dst = strconv.AppendInt(dst, it.TS(), 10)
	return append(dst, `}}`...)
}
