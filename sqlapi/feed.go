package sqlapi

import (
	"strconv"

	"github.com/orrerydb/orrery/core/status"
)

// feedReply builds the envelope of a feed of resources other than items: {"_rid":..,"Name":[..],"_count":n}.
type feedReply struct {
	c    *call
	rid  string
	name string
	rows [][]byte
}

// feed starts a feed under a parent's resource id.
func (c *call) feed(rid, name string) *feedReply { return &feedReply{c: c, rid: rid, name: name} }

// add appends one resource's JSON.
func (f *feedReply) add(row []byte) { f.rows = append(f.rows, row) }

// window returns the range of rows, out of n, that max-item-count and the continuation request. It sets the
// continuation of the reply to the index behind them. An index is enough, because these feeds are in the order of
// creation. size is the number of rows when the client names none.
func (f *feedReply) window(n, size int) (from, to int, err error) {
	if v := header(f.c.In, hContinuation); v != "" {
		at, err := strconv.Atoi(v)
		if err != nil || at < 0 {
			return 0, 0, badHeader("x-ms-continuation", v)
		}
		from = min(at, n)
	}
	if size, err = f.c.maxItems(size); err != nil {
		return 0, 0, err
	}
	if to = min(n, from+size); to < n {
		f.c.SetInt(rContinuation, int64(to))
	}
	return from, to, nil
}

// page reduces the rows to the requested page.
func (f *feedReply) page() error {
	from, to, err := f.window(len(f.rows), len(f.rows))
	if err == nil {
		f.rows = f.rows[from:to]
	}
	return err
}

// send writes the feed.
func (f *feedReply) send() error {
	if err := f.page(); err != nil {
		return err
	}
	return f.write()
}

func (f *feedReply) write() error {
	b := f.begin(f.c.Out[:0])
	for i, r := range f.rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	f.c.Out = b
	return f.end(len(f.rows))
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
