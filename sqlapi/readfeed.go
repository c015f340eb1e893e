package sqlapi

import (
	"net/http"
	"strconv"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// maxReply is the largest page in bytes. It is the service's limit of 4 MB.
const maxReply = 4 << 20

// maxReadPerPage bounds the index entries and items that one page reads. At the limit the page is sent with a
// continuation, even if it is empty.
const maxReadPerPage = 200_000

// readFeedHash is the plan hash of a read feed. No query has it, so a query refuses the continuations of read feeds.
const readFeedHash = 0x6f72726572792d31

// scope is the part of a container to which the headers restrict a read feed, a query or a change feed.
type scope struct {
	pk     core.PartitionKey // full key or prefix; nil: none
	span   span
	ranged bool // span is set
	page   int  // the largest number of items in the reply
}

// scopeOf reads the headers of a scope.
func (c *call) scopeOf(ct *core.Container, room core.PartitionKey) (s scope, err error) {
	if s.pk, err = c.partitionKey(room, &ct.Spec().PartitionKey, keyPrefix); err != nil {
		return s, err
	}
	if s.span, s.ranged, err = c.spanOf(ct); err != nil {
		return s, err
	}
	if v := header(c.In, hSessionToken); v != "" {
		if err = c.checkSession(ct, v); err != nil {
			return s, err
		}
	}
	s.page, err = c.maxItems(defaultPage)
	return s, err
}

// setScope adds the session headers of a page.
func (c *call) setScope(ct *core.Container, s *scope) {
	switch {
	case len(s.pk) == len(ct.Spec().PartitionKey.Paths):
		c.setSession(ct, s.pk)
		return
	case s.ranged:
		for _, p := range ct.Known() {
			if s.span.min >= p.Min && (s.span.min < p.Max || p.Max == "FF") {
				c.BeginLine(rSessionToken)
				c.Lines = wire.AppendSessionToken(c.Lines, p.ID, p.LSN, c.simpleTokens())
				c.EndLine()
				c.SetInt(hLSN, p.LSN)
				c.Set(rRangeID, p.ID)
				c.Set(hPhysicalID, p.ID)
				c.SetInt(hCommittedLSN, p.LSN)
				c.setContainer(ct)
				return
			}
		}
	}
	c.setContainerSession(ct)
	c.setContainer(ct)
}

// readFeed answers the items of a container in pages and in a stable order.
func readFeed(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	s, err := c.scopeOf(ct, room[:0])
	if err != nil {
		return err
	}
	q := exec.Query{PK: s.pk, PlanHash: readFeedHash, MaxRead: maxReadPerPage, Page: s.page,
		Shown: exec.CreationByPartition}
	q.Continuation = header(c.In, hContinuation)
	if s.ranged {
		restrict(&q, s.span)
	}
	rows, err := ct.Query(c.Ctx(), &q)
	if err != nil {
		return err
	}
	defer rows.Close()
	coll := ct.RID()
	c.Out = c.startDocuments(coll)
	n := 0
	for n < s.page && len(c.Out) < maxReply && rows.Next() {
		if n > 0 {
			c.Out = append(c.Out, ',')
		}
		c.Out = appendShown(c.Out, ct, rows.Item())
		n++
		if err := c.Hold(len(c.Out)); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	c.Charge = rows.Stats().Charge()
	if !rows.Exhausted() {
		if t := rows.Continuation(); t != "" {
			c.Set(rContinuation, t)
		}
	}
	c.setScope(ct, &s)
	return c.endDocuments(n)
}

// startDocuments begins the envelope of a page of items.
func (c *call) startDocuments(coll [8]byte) []byte {
	b := append(c.Out[:0], `{"_rid":"`...)
	b = wire.AppendRID(b, coll[:])
	return append(b, `","Documents":[`...)
}

// endDocuments ends the envelope and sends the page.
func (c *call) endDocuments(n int) error {
	b := append(c.Out, `],"_count":`...)
	b = strconv.AppendInt(b, int64(n), 10)
	c.Out = append(b, '}')
	c.SetInt(hItemCount, int64(n))
	return c.send(http.StatusOK)
}
