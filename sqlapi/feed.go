package sqlapi

import (
	"iter"
	"math"
	"strconv"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// feedReply builds the envelope of a feed of resources other than items: {"_rid":..,"Name":[..],"_count":n}. Its rows
// are the resources as JSON, with numbers in the order of their creation.
type feedReply struct {
	c    *call
	rid  string
	name string
	rows sql.ListRows
}

// feed starts a feed under a parent's resource id.
func (c *call) feed(rid, name string, rows sql.ListRows) *feedReply {
	return &feedReply{c: c, rid: rid, name: name, rows: rows}
}

// noRows are the rows of an empty feed.
func noRows(uint64) iter.Seq2[sql.ListRow, error] { return func(func(sql.ListRow, error) bool) {} }

// rowsOf gives the rows of things that are in memory, in the order of their numbers.
func rowsOf[T any](all []T, row func(T) (num uint64, show func() ([]byte, error))) sql.ListRows {
	return func(after uint64) iter.Seq2[sql.ListRow, error] {
		return func(yield func(sql.ListRow, error) bool) {
			for _, x := range all {
				num, show := row(x)
				if num <= after {
					continue
				}
				text, err := show()
				if !yield(sql.ListRow{JSON: text, Num: num}, err) || err != nil {
					return
				}
			}
		}
	}
}

// after returns the number that the continuation names: the page has the resources whose numbers are greater. A number
// stays right when resources are deleted, as clients do that delete what they list page by page; an index wouldn't.
func (f *feedReply) after() (uint64, error) {
	v := header(f.c.In, hContinuation)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, badHeader("x-ms-continuation", v)
	}
	return n, nil
}

// send writes the page that max-item-count and the continuation request. If the client names no size, it has up to size
// resources. A page is never above maxReply, unless one resource is.
func (f *feedReply) send(size int) error {
	after, err := f.after()
	if err != nil {
		return err
	}
	if size, err = f.c.maxItems(size); err != nil {
		return err
	}
	return f.write(after, size, maxReply)
}

// unlimited is the size of a page of a feed that comes whole if the client names no size.
const unlimited = math.MaxInt32

// write writes a page of the resources behind a number.
func (f *feedReply) write(after uint64, size, bytes int) error {
	c, n := f.c, 0
	b := f.begin(c.Out[:0])
	for row, err := range f.rows(after) {
		if err != nil {
			return err
		}
		if n == size || n > 0 && len(b)+len(row.JSON) > bytes {
			c.Set(rContinuation, strconv.FormatUint(after, 10))
			break
		}
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, row.JSON...)
		n, after = n+1, row.Num
		if err := c.Hold(len(b)); err != nil {
			return err
		}
	}
	c.Out = b
	return f.end(n)
}

// Page sizes of item feeds and queries.
const (
	defaultPage = 100
	largestPage = 1000 // for -1 ("the server picks"); a client may ask for more, up to the reply's size
)

// maxItems returns x-ms-max-item-count, or fallback when it is absent or 0. For -1 it is at least largestPage.
func (c *call) maxItems(fallback int) (int, error) {
	v := header(c.In, hMaxItems)
	if v == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(v, 10, 32)
	switch {
	case err != nil || n < -1:
		return 0, status.New(status.BadRequest, "The input PageSize %s is invalid. Ensure to pass a valid page size "+
			"which must be a positive integer or -1 for a dynamic page size", v)
	case n == 0:
		return fallback, nil
	case n == -1:
		return max(fallback, largestPage), nil
	}
	return int(n), nil
}

// tokenLimit returns the limit of a continuation in bytes, from x-ms-documentdb-responsecontinuationtokenlimitinkb; 0
// when absent. Continuations of read feeds and of the core's rows are always shorter than 1 KB.
func (c *call) tokenLimit() (int, error) {
	v := header(c.In, hTokenLimit)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 1 {
		return 0, badHeader("x-ms-documentdb-responsecontinuationtokenlimitinkb", v)
	}
	return int(n) << 10, nil
}

// isQuery reports whether a POST is a query. SDKs mark it with one of two headers, other clients only with the content
// type.
func (c *call) isQuery() bool {
	if isTrue(c.In, hIsQuery) || isTrue(c.In, hQuery) {
		return true
	}
	ct := header(c.In, hContentType)
	return len(ct) >= 22 && ct[:22] == "application/query+json"
}
