package sqlapi

import "strconv"

// feedReply builds the envelope of a feed of resources that are no items: {"_rid":..,"Name":[..],"_count":n}.
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

// page cuts the rows to what max-item-count and continuation ask for: these feeds are short and kept in creation order, so
// a position is enough of a continuation.
func (f *feedReply) page() error {
	from := 0
	if v := header(f.c.In, hContinuation); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return badHeader("x-ms-continuation", v)
		}
		from = min(n, len(f.rows))
	}
	size, err := f.c.maxItems(len(f.rows))
	if err != nil {
		return err
	}
	to := min(len(f.rows), from+size)
	if to < len(f.rows) {
		f.c.SetInt(rContinuation, int64(to))
	}
	f.rows = f.rows[from:to]
	return nil
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
	largestPage = 1000 // what -1 ("the server picks") gives; a greater number is taken as it is, up to the reply's size
)

// maxItems reads x-ms-max-item-count; fallback when absent or -1.
func (c *call) maxItems(fallback int) (int, error) {
	v := header(c.In, hMaxItems)
	if v == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n == 0 || n < -1 {
		return 0, badHeader("x-ms-max-item-count", v)
	}
	if n == -1 {
		return max(fallback, largestPage), nil
	}
	return int(n), nil
}

// tokenLimit reads x-ms-documentdb-responsecontinuationtokenlimitinkb: the most bytes of a continuation, 0 when absent. Those of
// read feeds and of the core's rows are below 1 KB always.
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

// isQuery reports whether a POST is a query: SDKs use one of two headers, and raw callers the content type alone.
func (c *call) isQuery() bool {
	if isTrue(c.In, hIsQuery) || isTrue(c.In, hQuery) {
		return true
	}
	ct := header(c.In, hContentType)
	return len(ct) >= 22 && ct[:22] == "application/query+json"
}
