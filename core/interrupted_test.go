package core_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// counters are what a process can tell of a container's contents.
var counters = map[string]func(c *core.Container, e *core.Engine) (any, error){
	"Count":      func(c *core.Container, _ *core.Engine) (any, error) { return c.Count(bg) },
	"Size":       func(c *core.Container, _ *core.Engine) (any, error) { return c.Size(bg) },
	"LSN":        func(c *core.Container, _ *core.Engine) (any, error) { return c.LSN(bg) },
	"GivenLSN":   func(c *core.Container, _ *core.Engine) (any, error) { return c.GivenLSN(bg) },
	"Partitions": func(c *core.Container, _ *core.Engine) (any, error) { return c.Partitions(bg) },
	"CountIn": func(c *core.Container, _ *core.Engine) (any, error) {
		n, _, err := c.CountIn(bg, pk("p"))
		return n, err
	},
	"ReportKey": func(c *core.Container, _ *core.Engine) (any, error) {
		r, err := c.ReportKey(bg)
		return r.Partitions, err
	},
	"Stats": func(_ *core.Container, e *core.Engine) (any, error) {
		for s, err := range e.Stats(bg, "db") {
			return s.Partitions, err
		}
		return nil, nil
	},
	"ChangeFeed": func(c *core.Container, _ *core.Engine) (any, error) {
		p, err := c.ChangeFeed(bg, c.Known()[0].ID, feed.Start(), 100)
		return len(p.Items), err
	},
}

// A process that can't read the store doesn't answer from memory, whichever of its reads fail. The answer is that of
// the process which has written, or the error Unavailable.
func TestCountersAreNotFromMemory(t *testing.T) {
	for name, get := range counters {
		t.Run(name, func(t *testing.T) {
			ps := startProcesses(t, 2, kvtest.Faults{})
			cs := ps.containers(core.ContainerSpec{})
			var want any
			n, right, refused := 0, 0, 0
			write := func() {
				put(t, cs[1], core.Create, fmt.Sprintf(`{"id":"%d","pk":"p"}`, n))
				n++
				var err error
				if want, err = get(cs[1], ps.all[1]); err != nil {
					t.Fatal(err)
				}
			}
			ps.store.Interrupt(kv.ErrUnavailable, true, write, func() {
				switch got, err := get(cs[0], ps.all[0]); {
				case status.Is(err, status.Unavailable):
					refused++
				case err != nil || fmt.Sprint(got) != fmt.Sprint(want):
					t.Errorf("%v (%v), want %v", got, err, want)
				default:
					right++
				}
			})
			if right == 0 || refused == 0 {
				t.Errorf("%d right answers, %d refusals", right, refused)
			}
		})
	}
}

// requests are requests of all kinds, as text of what they answer. n is another number for each.
var requests = map[string]func(t *testing.T, c *core.Container, n int) (any, error){
	"read": func(_ *testing.T, c *core.Container, _ int) (any, error) {
		it, err := c.Read(bg, pk("1"), value.StringOf("1"))
		if err != nil {
			return nil, err
		}
		return string(it.Doc), nil
	},
	"write": func(t *testing.T, c *core.Container, n int) (any, error) {
		_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(`{"id":"w%d","pk":"w"}`, n))})
		return nil, err
	},
	"transaction": func(_ *testing.T, c *core.Container, _ int) (any, error) {
		var got []string
		_, err := c.WithTx(bg, pk("1"), func(tx *core.Tx) error {
			got = nil
			if _, err := tx.Read(value.StringOf("1")); err != nil {
				return err
			}
			rows, err := c.QueryTx(bg, tx, ptr(byField("a")))
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				got = append(got, rows.Item().ID().Str())
			}
			return rows.Err()
		})
		return got, err
	},
	"transaction that hides an error": func(t *testing.T, c *core.Container, n int) (any, error) {
		var err error
		_, txErr := c.WithTx(bg, pk("1"), func(tx *core.Tx) error {
			_, err = tx.Read(value.StringOf("1"))
			item := mustDoc(t, fmt.Sprintf(`{"id":"h%d","pk":"1"}`, n))
			_, werr := tx.Write(&core.Write{Kind: core.Create, Doc: item})
			return werr
		})
		return err, txErr // a transaction without the read isn't committed
	},
	"feed": func(_ *testing.T, c *core.Container, _ int) (any, error) {
		p, err := c.Feed(bg, feed.Scope{PK: pk("0")}, feed.Start(), 1000)
		return len(p.Items), err
	},
	"feed now": func(_ *testing.T, c *core.Container, _ int) (any, error) {
		p, err := c.FeedNow(bg, feed.Scope{PK: pk("0")})
		return p.String(), err
	},
	"count": func(_ *testing.T, c *core.Container, _ int) (any, error) {
		n, _, err := c.CountIn(bg, pk("0"))
		return n, err
	},
	"report": func(_ *testing.T, c *core.Container, _ int) (any, error) {
		r, err := c.ReportKey(bg)
		return r.Whole, err
	},
}

// A request whose snapshot the engine has removed goes on in a new one, at any of its reads: it is begun again if it
// has answered nothing, and a query continues after its last row. If that happens each time, the request ends with
// Unavailable.
func TestRequestsOutliveTheirSnapshots(t *testing.T) {
	all := maps.Clone(requests)
	for name, q := range longQueries() {
		all["query by "+name] = func(t *testing.T, c *core.Container, _ int) (any, error) {
			own := *q
			own.MaxRead = 0
			rows, err := c.Query(bg, &own)
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			var got []string
			for rows.Next() {
				if id := rows.Item().ID().Str(); id[0] != 'w' && id[0] != 'h' {
					got = append(got, id)
				}
			}
			return got, rows.Err()
		}
	}
	ps := startProcesses(t, 1, kvtest.Faults{})
	c := ps.containers(core.ContainerSpec{})[0]
	putMany(t, c, 200, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","pk":"%d","a":%d,"b":%d,"c":%d}`, i, i%2, i%3, i, i%5)
	})
	n := 0
	for name, do := range all {
		n++
		want, err := do(t, c, n)
		if err != nil {
			t.Fatal(name, err)
		}
		ps.store.Interrupt(kv.ErrSnapshotTooOld, false, func() { n++ }, func() {
			if got, err := do(t, c, n); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v (%v), want %v", name, got, err, want)
			}
		})
		refused := 0
		ps.store.Interrupt(kv.ErrSnapshotTooOld, true, func() { n++ }, func() {
			switch _, err := do(t, c, n); {
			case status.Is(err, status.Unavailable):
				refused++
			case err != nil:
				t.Errorf("%s: %v", name, err)
			}
		})
		if refused == 0 {
			t.Errorf("%s: never refused", name)
		}
	}
}
