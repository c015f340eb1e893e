package tikvkv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// history has readers and writers of a few registers in several processes over one cluster. Requests to the stores are
// lost, and so are answers.
//
// Each version of a register has a value of its own. LSNs are the order of a register's versions, so it is enough to
// check of each read and write that it shows nothing older than what had ended before it began.
type history struct {
	t     *testing.T
	all   []*core.Engine
	value atomic.Int64

	mu    sync.Mutex
	ended map[string]int64           // the greatest LSN that a read or write of a register has returned
	shown map[string]map[int64]int64 // the value of each LSN of a register
	wrote int
}

const (
	registers  = 4
	operations = 25 // of each of two users in a process
)

// skews are the differences of the processes' clocks.
var skews = []time.Duration{0, 24 * time.Hour, -5 * time.Minute}

func TestHistory(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d processes", n), func(t *testing.T) {
			m := newMock(t)
			h := &history{t: t, ended: map[string]int64{}, shown: map[string]map[int64]int64{}}
			var connections []*faulty
			for i := range n {
				e, f := m.openFaulty(Options{Timeout: 2 * time.Second})
				of, err := core.Open(bg, kv.Checked(e), core.Options{Logger: slog.New(slog.DiscardHandler),
					Clock: clock.Fake(time.Unix(1_700_000_000, 0).Add(skews[i]))})
				if err != nil {
					t.Fatal(err)
				}
				h.all, connections = append(h.all, of), append(connections, f)
			}
			h.make()
			for i, f := range connections {
				f.set(losing(uint64(i)))
			}
			h.run()
			for _, f := range connections {
				f.set(nil)
			}
			h.finish()
		})
	}
}

// losing loses one request in 200, and one answer in 200.
func losing(seed uint64) func(context.Context, *tikvrpc.Request) outcome {
	r := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	return func(context.Context, *tikvrpc.Request) outcome {
		mu.Lock()
		defer mu.Unlock()
		switch r.IntN(200) {
		case 0:
			return lost
		case 1:
			return unheard
		}
		return arrives
	}
}

// make creates the container with its registers and accounts.
func (h *history) make() {
	e := h.all[0]
	if _, err := e.EnsureDatabase(bg, "db"); err != nil {
		h.t.Fatal(err)
	}
	if _, err := e.CreateContainer(bg, "db", core.ContainerSpec{ID: "c",
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); err != nil {
		h.t.Fatal(err)
	}
	for i := range registers {
		h.set(h.container(0), fmt.Sprint("r", i))
	}
	for i := range 2 {
		if _, err := h.container(0).Write(bg, core.Write{Kind: core.Create, Doc: account(h.t, i, 100)}); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *history) container(p int) *core.Container {
	c, err := h.all[p].Container("db", "c")
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func parse(t testing.TB, text string) doc.Doc {
	d, err := doc.FromJSON(nil, []byte(text), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func account(t *testing.T, i int, money int64) doc.Doc {
	return parse(t, fmt.Sprintf(`{"id":"a%d","pk":"bank","money":%d}`, i, money))
}

func key(pk string) core.PartitionKey { return core.PartitionKey{value.StringOf(pk)} }

// least returns the LSN that a register has at least now.
func (h *history) least(id string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended[id]
}

// saw records what a read or a write has returned that began when the register had at least LSN least.
func (h *history) saw(id string, v, lsn, least int64, write bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lsn < least || write && lsn == least {
		h.t.Errorf("%s: LSN %d after %d, write %v", id, lsn, least, write)
	}
	if h.shown[id] == nil {
		h.shown[id] = map[int64]int64{}
	}
	if was, ok := h.shown[id][lsn]; ok && was != v {
		h.t.Errorf("%s: the values %d and %d have LSN %d", id, was, v, lsn)
	}
	h.shown[id][lsn] = v
	h.ended[id] = max(h.ended[id], lsn)
	if write {
		h.wrote++
	}
}

// failed reports an error that no fault explains.
func (h *history) failed(err error) {
	switch status.CodeOf(err) {
	case status.Unavailable, status.UnknownOutcome, status.RetryWith, status.TooManyRequests, status.Timeout:
	default:
		h.t.Error(err)
	}
}

func (h *history) set(c *core.Container, id string) {
	v, least := h.value.Add(1), h.least(id)
	r, err := c.Write(bg, core.Write{Kind: core.Upsert,
		Doc: parse(h.t, fmt.Sprintf(`{"id":%q,"pk":%q,"v":%d}`, id, id, v))})
	if err != nil {
		h.failed(err)
		return
	}
	h.saw(id, v, r.LSN, least, true)
}

func (h *history) get(c *core.Container, id string) {
	least := h.least(id)
	it, err := c.Read(bg, key(id), value.StringOf(id))
	if err != nil {
		h.failed(err)
		return
	}
	h.saw(id, doc.Get(it.Doc, "v").Int(), it.LSN, least, false)
}

// transfer moves money from one account to the other.
func (h *history) transfer(c *core.Container) {
	_, err := c.WithTx(bg, key("bank"), func(tx *core.Tx) error {
		for i, n := range []int64{-1, 1} {
			it, err := tx.Read(value.StringOf(fmt.Sprint("a", i)))
			if err != nil {
				return err
			}
			if _, err := tx.Write(&core.Write{Kind: core.Replace,
				Doc: account(h.t, i, doc.Get(it.Doc, "money").Int()+n)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.failed(err)
	}
}

func (h *history) run() {
	var users sync.WaitGroup
	for w := range 2 * len(h.all) {
		users.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 2))
			for range operations {
				c, err := h.all[w%len(h.all)].Container("db", "c")
				if err != nil {
					h.failed(err)
					continue
				}
				id := fmt.Sprint("r", r.IntN(registers))
				switch r.IntN(5) {
				case 0, 1:
					h.set(c, id)
				case 2:
					h.transfer(c)
				default:
					h.get(c, id)
				}
			}
		})
	}
	users.Wait()
}

// finish compares what every process finds at the end: the same registers, the money, and an undamaged store.
func (h *history) finish() {
	for p, e := range h.all {
		c := h.container(p)
		newest := map[string]int64{}
		for i := range registers {
			id := fmt.Sprint("r", i)
			h.get(c, id)
			newest[id] = h.least(id)
		}
		var sum int64
		for i := range 2 {
			it, err := c.Read(bg, key("bank"), value.StringOf(fmt.Sprint("a", i)))
			if err != nil {
				h.t.Fatal(err)
			}
			sum += doc.Get(it.Doc, "money").Int()
		}
		if sum != 200 {
			h.t.Errorf("process %d: the accounts hold %d", p, sum)
		}
		if seen := h.tail(c); seen != fmt.Sprint(newest) {
			h.t.Errorf("process %d: the feed shows %s, want %v", p, seen, newest)
		}
		if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
			h.t.Errorf("process %d: %v\n%s", p, err, strings.Join(problems, "\n"))
		}
	}
	if h.wrote < operations/2*len(h.all) { // two in five operations write
		h.t.Errorf("only %d writes", h.wrote)
	}
	h.t.Logf("%d writes", h.wrote)
	var err error
	for _, e := range h.all {
		err = errors.Join(err, e.Close())
	}
	if err != nil {
		h.t.Error(err)
	}
}

// tail reads the feed from its beginning, and returns the LSN of the newest version of each register in it.
func (h *history) tail(c *core.Container) string {
	found := map[string]int64{}
	for pos, over := feed.Start(), false; !over; {
		page, err := c.Feed(bg, feed.Scope{}, pos, 5)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, it := range page.Items {
			if id := it.ID().Str(); id[0] == 'r' {
				found[id] = it.LSN
			}
		}
		pos, over = page.Next, len(page.Items) == 0 && !page.More
	}
	return fmt.Sprint(found)
}
