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
// write. The position is the etag of the reply before; 304 says that there is nothing new, and carries an etag too. A
// reply of 200 without items says that the page's work was used up before any were found: there may be more.
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

// feedPage reads a page from where the request says that the feed goes on: nothing is the beginning, an etag of ours
// behind what was read with it. The page of *, now, has no items: only what is written from now on is asked for.
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

// feedSince reads a start time in seconds; 0 when there is none. Clients write the zone as GMT or UTC.
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

// appendFeedChange appends an item as the current state of a change. What kind of write made it is not told: the feed
// of the latest version doesn't know.
func appendFeedChange(dst []byte, ct *core.Container, it *core.Item) []byte {
	dst = append(dst, `{"current":`...)
	dst = appendFeedItem(dst, ct, it)
	dst = append(dst, `,"metadata":{"lsn":`...)
	dst = strconv.AppendInt(dst, it.LSN, 10)
	dst = append(dst, `,"crts":`...)
	dst = strconv.AppendInt(dst, it.TS(), 10)
	return append(dst, `}}`...)
}
