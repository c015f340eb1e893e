package sqlapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// changeFeed answers the latest-version change feed: the items written after a position, in the order of their last
// write. The position is the etag of the previous reply. 304 means that there is nothing new; it has an etag too. A
// reply 200 without items means that the page reached its work limit before it found any; there may be more.
//
// Example: items a, b, a are written. A first request without an etag returns b, a (the latest version of each) and
// etag E1. A request with E1 returns 304. After a write of c, a request with E1 returns c and etag E2.
func changeFeed(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	if !strings.EqualFold(header(c.In, hAIM), "Incremental feed") {
		return status.New(status.NotSupported, "Change feeds other than the incremental (latest version) one are "+
			"not supported by this server.")
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
	sc := feed.Scope{PK: s.pk}
	if s.ranged {
		sc.Range.Min, sc.Range.Max = s.span.min, s.span.max
	}
	if sc.Since, err = feedSince(header(c.In, hIfModifiedSince)); err != nil {
		return err
	}
	page, err := c.feedPage(ct, sc, size)
	if err != nil {
		return err
	}
	show := appendFeedItem
	if header(c.In, hWireFormat) == wrappedFormat {
		show = appendFeedChange
	}
	c.Out = c.startDocuments(ct.RID())
	bytes := 0
	for i, it := range page.Items {
		if i > 0 {
			c.Out = append(c.Out, ',')
		}
		bytes += len(it.Doc)
		c.Out = show(c.Out, ct, it)
		if err := c.Hold(len(c.Out)); err != nil {
			return err
		}
	}
	n := len(page.Items)
	c.setETag(page.Next.String())
	c.setScope(ct, &s)
	c.Charge = ru.Query(1, 0, n, bytes)
	if n == 0 && !page.More {
		return c.send(http.StatusNotModified)
	}
	return c.endDocuments(n)
}

// feedPage reads a page from the position that the request names. Without an etag that is the beginning. With an etag
// of this server it is behind the items of that reply. With * it is the current end: the page has no items, and its
// etag is for items that are written later.
func (c *call) feedPage(ct *core.Container, sc feed.Scope, size int) (page feed.Page, err error) {
	pos := feed.Start()
	switch v := header(c.In, hIfNoneMatch); v {
	case "":
	case "*":
		page.Next, err = ct.FeedNow(sc)
		return page, err
	default:
		if pos, err = feed.Parse(trimETag(v)); err != nil {
			return page, err
		}
	}
	return ct.Feed(c.Ctx(), sc, pos, size)
}

// feedSince returns a start time in seconds since 1970, 0 when there is none. It accepts an HTTP date, with the zone
// GMT or UTC, and ISO 8601.
func feedSince(v string) (int64, error) {
	if v == "" {
		return 0, nil
	}
	if t, err := http.ParseTime(strings.Replace(v, " UTC", " GMT", 1)); err == nil {
		return t.Unix(), nil
	}
	t, ok := isotime.Parse(v, isotime.Full)
	if !ok {
		return 0, badHeader("If-Modified-Since", v)
	}
	return t.Unix(), nil
}

// appendFeedItem appends an item and the LSN of its last write. Only the change feed shows that LSN.
func appendFeedItem(dst []byte, ct *core.Container, it *core.Item) []byte {
	dst = appendShown(dst, ct, it)
	dst = append(dst[:len(dst)-1], `,"_lsn":`...)
	dst = strconv.AppendInt(dst, it.LSN, 10)
	return append(dst, '}')
}

// wrappedFormat is the wire format in which a change is an object that contains the item. Java's newer change feed
// processor also requests it in the incremental mode.
const wrappedFormat = "2021-09-15"

// appendFeedChange appends an item as the current state of a change. The kind of write is left out: the latest-version
// feed doesn't record it.
func appendFeedChange(dst []byte, ct *core.Container, it *core.Item) []byte {
	dst = append(dst, `{"current":`...)
	dst = appendFeedItem(dst, ct, it)
	dst = append(dst, `,"metadata":{"lsn":`...)
	dst = strconv.AppendInt(dst, it.LSN, 10)
	dst = append(dst, `,"crts":`...)
	dst = strconv.AppendInt(dst, it.TS(), 10)
	return append(dst, `}}`...)
}
