package sqlapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/isotime"
	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// changeFeed answers the change feed. The latest-version feed has the items written after a position, in the order of
// their last write. The position is the etag of the previous reply. 304 means that there is nothing new; it has an etag
// too. A reply 200 without items means that the page reached its work limit before it found any; there may be more.
//
// Example: items a, b, a are written. A first request without an etag returns b, a (the latest version of each) and
// etag E1. A request with E1 returns 304. After a write of c, a request with E1 returns c and etag E2.
func changeFeed(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	f, err := c.feedKind()
	if err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	s, err := c.scopeOf(ct, room[:0])
	if err != nil {
		return err
	}
	sc := feed.Scope{PK: s.pk}
	if s.ranged {
		sc.Range.Min, sc.Range.Max = s.span.min, s.span.max
	}
	if !f.versions { // all versions are read from a position only
		if sc.Since, err = feedSince(header(c.In, hIfModifiedSince)); err != nil {
			return err
		}
	}
	page, err := c.feedPage(ct, f, sc, s.page)
	if err != nil {
		return err
	}
	c.Out = c.startDocuments(ct.RID())
	n, err := c.appendFeed(ct, f, &page)
	if err != nil {
		return err
	}
	c.setETag(page.Next.String())
	c.setScope(ct, &s)
	c.Charge = core.FeedCharge(&page)
	if n == 0 && !page.More {
		c.SetInt(hItemCount, 0) // .NET's client wants the number here as well
		return c.send(http.StatusNotModified)
	}
	return c.endDocuments(n)
}

// feedKind is the kind of change feed that a request asks for.
type feedKind struct {
	versions bool // all versions and deletes
	wrapped  bool // each item is shown inside a change
}

func (c *call) feedKind() (feedKind, error) {
	wrapped := header(c.In, hWireFormat) == wrappedFormat
	switch aim := header(c.In, hAIM); {
	case strings.EqualFold(aim, "Incremental feed"):
		return feedKind{wrapped: wrapped}, nil
	case strings.EqualFold(aim, "Full-Fidelity Feed"):
		return feedKind{versions: true, wrapped: true}, nil
	}
	return feedKind{}, status.New(status.NotSupported, "A change feed is either an incremental feed (latest version) "+
		"or a full-fidelity feed (all versions and deletes).")
}

// appendFeed appends the items or changes of a page. It returns their number.
func (c *call) appendFeed(ct *core.Container, f feedKind, page *feed.Page) (n int, err error) {
	show := appendFeedItem
	if f.wrapped {
		show = appendFeedChange
	}
	for i, it := range page.Items {
		if i > 0 {
			c.Out = append(c.Out, ',')
		}
		c.Out = show(c.Out, ct, it)
		if err := c.Hold(len(c.Out)); err != nil {
			return 0, err
		}
	}
	for i, ch := range page.Changes {
		if i > 0 {
			c.Out = append(c.Out, ',')
		}
		c.Out = appendVersion(c.Out, ct, ch)
		if err := c.Hold(len(c.Out)); err != nil {
			return 0, err
		}
	}
	return len(page.Items) + len(page.Changes), nil
}

// feedPage reads a page from the position that the request names. Without an etag that is the beginning, which the feed
// of all versions doesn't have. With an etag of this server it is behind the items of that reply. With * it is the
// current end: the page has no items, and its etag is for items that are written later.
func (c *call) feedPage(ct *core.Container, f feedKind, sc feed.Scope, size int) (page feed.Page, err error) {
	now, read := ct.FeedNow, ct.Feed
	if f.versions {
		now, read = ct.FeedVersionsNow, ct.FeedVersions
	}
	pos := feed.Start()
	switch v := header(c.In, hIfNoneMatch); v {
	case "":
		if f.versions {
			if _, err = now(c.Ctx(), sc); err == nil {
				err = feed.ErrNotKept()
			}
			return page, err
		}
	case "*":
		page.Next, err = now(c.Ctx(), sc)
		return page, err
	default:
		if pos, err = feed.Parse(trimETag(v)); err != nil {
			return page, err
		}
	}
	return read(c.Ctx(), sc, pos, size)
}

// feedSince returns the first second, since 1970, whose writes a feed with a start time has; 0 when there is none. The
// second of the start time itself is left out: it is exclusive, as .NET's ChangeFeedOptions say, and clients of before
// If-None-Match: * mean by the present time that nothing written before is read. It accepts an HTTP date, with the zone
// GMT or UTC, and ISO 8601.
func feedSince(v string) (int64, error) {
	if v == "" {
		return 0, nil
	}
	if t, err := http.ParseTime(strings.Replace(v, " UTC", " GMT", 1)); err == nil {
		return t.Unix() + 1, nil
	}
	t, ok := isotime.Parse(v, isotime.Full)
	if !ok {
		return 0, badHeader("If-Modified-Since", v)
	}
	return t.Unix() + 1, nil
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

// The kinds of change as the service names them.
var operationTypes = [...]string{core.LogCreate: "create", core.LogReplace: "replace", core.LogDelete: "delete"}

// appendVersion appends a change of the feed of all versions. A delete has an empty current item.
func appendVersion(dst []byte, ct *core.Container, ch *core.LogEntry) []byte {
	dst = append(dst, `{"current":`...)
	if ch.Current != nil {
		dst = appendShown(dst, ct, ch.Current)
	} else {
		dst = append(dst, `{}`...)
	}
	if ch.Previous != nil {
		dst = append(dst, `,"previous":`...)
		dst = appendShown(dst, ct, ch.Previous)
	}
	dst = append(dst, `,"metadata":{"lsn":`...)
	dst = strconv.AppendInt(dst, ch.LSN, 10)
	dst = append(dst, `,"crts":`...)
	dst = strconv.AppendInt(dst, ch.TS(), 10)
	dst = append(dst, `,"operationType":"`...)
	dst = append(append(dst, operationTypes[ch.Op]...), '"')
	if ch.Previous != nil {
		dst = append(dst, `,"previousImageLSN":`...)
		dst = strconv.AppendInt(dst, ch.Previous.LSN, 10)
	}
	if ch.Op == core.LogDelete {
		dst = append(dst, `,"timeToLiveExpired":`...)
		dst = strconv.AppendBool(dst, ch.Expired)
		dst = appendDeleted(dst, ct, ch.Previous)
	}
	return append(dst, `}}`...)
}

// appendDeleted appends the id and the partition key of a deleted item, as members of an object.
func appendDeleted(dst []byte, ct *core.Container, it *core.Item) []byte {
	dst = append(dst, `,"id":`...)
	dst = cjson.AppendString(dst, core.IdentityText(it.ID()))
	dst = append(dst, `,"partitionKey":{`...)
	n := 0
	for i, v := range it.PK() {
		if !v.IsDefined() {
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = cjson.AppendString(dst, strings.TrimPrefix(ct.Spec().PartitionKey.Paths[i], "/"))
		dst = append(dst, ':')
		dst = value.AppendText(dst, v, value.PlainJSON)
	}
	return append(dst, '}')
}
