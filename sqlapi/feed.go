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

// window returns which of n rows max-item-count and continuation ask for, and sets the continuation to what is behind
// them: these feeds are kept in creation order, so a position is enough. size is how many are given where the client
// doesn't say.
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

// page cuts the rows to what the client asks for.
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

// tokenLimit reads x-ms-documentdb-responsecontinuationtokenlimitinkb: the most bytes of a continuation, 0 when absent.
// Those of read feeds and of the core's rows are below 1 KB always.
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
