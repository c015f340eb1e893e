package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/catalog"
)

// wait waits until is returns true.
func wait(t testing.TB, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// P7: raising the throughput above what the partitions serve splits them. Reads with the session token of before, a
// query that has begun, and a reader of the change feed go on. Lowering it merges nothing.
func TestP7RaisingSplits(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	c := harness.Container(t, db, "c", 400, "/k")
	var token string
	for i := range 60 {
		r, err := c.CreateItem(bg, str(fmt.Sprint("k", i)), []byte(fmt.Sprintf(`{"id":"%d","k":"k%d"}`, i, i)), nil)
		ok(t, err)
		token = *r.SessionToken
	}
	p := c.NewQueryItemsPager("SELECT VALUE c.id FROM c", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{PageSizeHint: 7})
	first, err := p.NextPage(bg)
	ok(t, err)
	rows := len(first.Items)
	feed := &tail{c: c}
	ok(t, feed.poll(5))
	_, err = c.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(20000), nil)
	ok(t, err)
	wait(t, "split", func() bool { return len(bars(t, s, db.ID(), "c")) == 2 })
	for p.More() {
		page, err := p.NextPage(bg)
		ok(t, err)
		rows += len(page.Items)
	}
	if rows != 60 {
		t.Errorf("a query that went on over a split has %d rows, want 60", rows)
	}
	for i := range 60 {
		_, err := c.ReadItem(bg, str(fmt.Sprint("k", i)), fmt.Sprint(i), &azcosmos.ItemOptions{SessionToken: &token})
		ok(t, err)
	}
	wait(t, "feed", func() bool {
		ok(t, feed.poll(100))
		return len(feed.got) >= 60
	})
	if len(feed.got) != 60 || len(slices.Compact(slices.Sorted(slices.Values(feed.got)))) != 60 {
		t.Errorf("the feed has %d changes, want 60", len(feed.got))
	}
	_, err = c.ReplaceThroughput(bg, azcosmos.NewManualThroughputProperties(400), nil)
	ok(t, err)
	if n := len(bars(t, s, db.ID(), "c")); n != 2 {
		t.Errorf("%d partitions after the throughput was lowered", n)
	}
}

// P5: a physical partition at its storage limit splits into two with about half of the data each, unseen by the clients
// that write and read.
func TestP5FullPartitionSplits(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Strict, cfg.PartitionGB, cfg.MinSlots = nil, 64<<10/float64(1<<30), 1
	s := harness.StartWith(t, cfg)
	db := s.Database(t)
	c := harness.Container(t, db, "c", 400, "/k")
	pad := strings.Repeat("x", 1000)
	n := 0
	wait(t, "four partitions", func() bool {
		for range 10 {
			key := str(fmt.Sprint("k", n%80))
			_, err := c.CreateItem(bg, key, []byte(fmt.Sprintf(`{"id":"%d","k":"k%d","pad":%q}`, n, n%80, pad)), nil)
			ok(t, err)
			_, err = c.ReadItem(bg, key, fmt.Sprint(n), nil)
			ok(t, err)
			n++
		}
		return len(bars(t, s, db.ID(), "c")) >= 4
	})
	for _, p := range bars(t, s, db.ID(), "c") {
		if p.Bytes < 8<<10 {
			t.Errorf("partition %s has %d bytes only", p.ID, p.Bytes)
		}
	}
	if rows := harness.Query(t, c, azcosmos.NewPartitionKey(), "SELECT VALUE c.id FROM c"); len(rows) != n {
		t.Errorf("%d items, want %d", len(rows), n)
	}
}

// tail is a reader of a container's change feed.
type tail struct {
	c    *azcosmos.ContainerClient
	next *string
	each func([]byte) error // what else is done with each item

	mu  sync.Mutex
	got []string
}

// read returns how many changes were read.
func (r *tail) read() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// poll reads some pages.
func (r *tail) poll(pages int) error {
	for range pages {
		o := &azcosmos.ChangeFeedOptions{MaxItemCount: 100, Continuation: r.next}
		if r.next == nil {
			o.FeedRange = &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}
		}
		res, err := r.c.ReadChangeFeed(bg, o)
		if err != nil {
			return err
		}
		for _, d := range res.Items {
			var it struct{ ID string }
			if err := json.Unmarshal(d, &it); err != nil {
				return err
			}
			if r.each != nil {
				if err := r.each(d); err != nil {
					return err
				}
			}
			r.mu.Lock()
			r.got = append(r.got, it.ID)
			r.mu.Unlock()
		}
		if res.ContinuationToken != "" {
			r.next = &res.ContinuationToken
		}
	}
	return nil
}

// full is the variable that makes TestSplitsUnderClients split slots of 10 MB.
const full = "ORRERY_SPLITS"

const (
	bigSplits = 60       // at least so many
	bigSlot   = 10 << 20 // bytes of each
)

// slotsOf returns the ids of a container's slots.
func slotsOf(t *testing.T, ct *core.Container) (ids []uint32) {
	t.Helper()
	ok(t, ct.ChangeMap(bg, func(m *catalog.SlotMap) (*catalog.SlotMap, error) {
		ids = nil
		for _, sl := range m.Slots {
			ids = append(ids, sl.ID)
		}
		return m, nil
	}))
	return ids
}

// without returns the ids that aren't among others.
func without(ids, others []uint32) (out []uint32) {
	for _, id := range ids {
		if !slices.Contains(others, id) {
			out = append(out, id)
		}
	}
	return out
}

// Eight clients write, read, query and tail a container that is born with one slot, while it goes from 1 to 64 physical
// partitions and back. No request fails, no row of a query is missing or comes twice, and the feeds have each change.
//
// With ORRERY_SPLITS=full the slots that are split have at least 10 MB.
func TestSplitsUnderClients(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Strict, cfg.MinSlots = nil, 1
	w := &workload{keys: 200}
	preload, padding := 150, 100
	if os.Getenv(full) == "full" {
		cfg.Memory, cfg.Data = false, t.TempDir()
		w.keys, preload, padding = 3200, 16000, 30<<10
	}
	s := harness.StartWith(t, cfg)
	db := s.Database(t)
	c := harness.Container(t, db, "c", 0, "/k")
	ct, err := s.Engine().Container(db.ID(), "c")
	ok(t, err)
	w.c = c
	w.preload(t, preload, strings.Repeat("x", padding))
	stop := make(chan struct{})
	var clients sync.WaitGroup
	tails := []*tail{{c: c}, {c: c}}
	steps := []func() error{w.write, w.write, w.write, w.read, w.queryKey, w.queryAll,
		func() error { return tails[0].poll(1) }, func() error { return tails[1].poll(1) }}
	done := make([]atomic.Int64, len(steps))
	for i, step := range steps {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := step(); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				done[i].Add(1)
			}
		})
	}
	splits, copies, big, begun, slots := 0, 0, 0, time.Now(), slotsOf(t, ct)
	if len(slots) != 1 {
		t.Fatalf("the container is born with %d slots", len(slots))
	}
	for len(ct.Known()) < 64 && !t.Failed() {
		for _, p := range ct.Known() {
			ok(t, ct.SplitPartition(bg, p.ID))
			splits++
			// two new slots in the place of one: the items were copied, the partition wasn't cut at a slot's boundary
			now := slotsOf(t, ct)
			if made := without(now, slots); len(made) == 2 && len(without(slots, now)) == 1 {
				if copies++; p.Bytes >= bigSlot {
					big++
				}
			}
			slots = now
		}
		w.round(done)
	}
	t.Logf("%d splits, %d with copies, %d of these of at least %d bytes, in %.1f s", splits, copies, big, bigSlot,
		time.Since(begun).Seconds())
	// azcosmos reads a merged range once for each of its former ranges. Here the feeds read what there is before that.
	for all := int(w.all()); min(tails[0].read(), tails[1].read()) < all && !t.Failed(); {
		time.Sleep(time.Millisecond)
	}
	exact := []int{tails[0].read(), tails[1].read()} // at least so much was read before the merges
	begun = time.Now()
	for len(ct.Known()) > 1 && !t.Failed() {
		parts := ct.Known()
		for i := 0; i+1 < len(parts); i += 2 {
			ok(t, ct.MergePartitions(bg, parts[i].ID))
		}
		w.round(done)
	}
	t.Logf("merged in %.1f s", time.Since(begun).Seconds())
	close(stop)
	clients.Wait()
	if t.Failed() {
		return
	}
	if copies < 63 {
		t.Errorf("%d splits have copied a slot", copies)
	}
	if n := len(slotsOf(t, ct)); n != 1 {
		t.Errorf("%d slots after the merges", n)
	}
	if splits < 63 || len(ct.Known()[0].Parents) != 189 { // 1 + 2 x 63 before the merges, of which 62 made parents
		t.Errorf("%d splits, and %d parents", splits, len(ct.Known()[0].Parents))
	}
	if os.Getenv(full) == "full" && big < bigSplits {
		t.Errorf("%d copies of at least %d bytes, want %d", big, bigSlot, bigSplits)
	}
	want := make([]string, w.made.Load())
	for i := range want {
		want[i] = strconv.Itoa(i)
	}
	slices.Sort(want)
	rows := harness.Query(t, c, azcosmos.NewPartitionKey(), "SELECT VALUE c.id FROM c")
	var ids []string
	for _, r := range rows {
		ids = append(ids, strings.Trim(r, `"`))
	}
	if slices.Sort(ids); !slices.Equal(ids, want) {
		t.Errorf("the container has %d items, want %d", len(ids), len(want))
	}
	for i, r := range tails {
		for before := -1; before != len(r.got); { // an empty page says that all ranges are read
			before = len(r.got)
			ok(t, r.poll(1))
		}
		// azcosmos reads a merged range once for each of its former ranges, so changes come again. None comes twice
		// before that, and none is missing.
		slices.Sort(r.got[:exact[i]])
		if n := len(slices.Compact(slices.Clone(r.got[:exact[i]]))); n != exact[i] {
			t.Errorf("feed %d has %d changes twice", i, exact[i]-n)
		}
		slices.Sort(r.got)
		if got := slices.Compact(r.got); !slices.Equal(got, want) {
			t.Errorf("feed %d has %d different changes, want %d", i, len(got), len(want))
		}
	}
}

// workload is what clients do with a container. Item n has the id n, and the key n modulo keys. All items below all are
// acknowledged.
type workload struct {
	c    *azcosmos.ContainerClient
	keys int64
	made atomic.Int64

	mu    sync.Mutex
	begun map[int64]bool
}

// round waits until each client has done something more.
func (w *workload) round(done []atomic.Int64) {
	was := make([]int64, len(done))
	for i := range done {
		was[i] = done[i].Load()
	}
	for begun := time.Now(); time.Since(begun) < 5*time.Second; time.Sleep(time.Millisecond) {
		more := true
		for i := range done {
			more = more && done[i].Load() > was[i]
		}
		if more {
			return
		}
	}
}

func (w *workload) keyOf(n int64) azcosmos.PartitionKey { return str(fmt.Sprint("k", n%w.keys)) }

// preload creates items with a pad, four at a time.
func (w *workload) preload(t *testing.T, items int, pad string) {
	t.Helper()
	begun := time.Now()
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range items / 4 {
				if err := w.create(pad); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	t.Logf("%d items in %.1f s", items, time.Since(begun).Seconds())
}

// write creates the next item, a small one: azcosmos reads those that follow the merges up to 64 times.
func (w *workload) write() error { return w.create("") }

func (w *workload) create(pad string) error {
	w.mu.Lock()
	n := w.made.Add(1) - 1
	if w.begun == nil {
		w.begun = map[int64]bool{}
	}
	w.begun[n] = true
	w.mu.Unlock()
	body := fmt.Sprintf(`{"id":"%d","k":"k%d","n":%d,"pad":%q}`, n, n%w.keys, n, pad)
	_, err := w.c.CreateItem(bg, w.keyOf(n), []byte(body), nil)
	w.mu.Lock()
	delete(w.begun, n)
	w.mu.Unlock()
	return err
}

// all returns a number below which all items are acknowledged.
func (w *workload) all() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.made.Load()
	for i := range w.begun {
		n = min(n, i)
	}
	return n
}

// read reads an item of before.
func (w *workload) read() error {
	n := w.all() * 7 / 11
	r, err := w.c.ReadItem(bg, w.keyOf(n), fmt.Sprint(n), nil)
	if err == nil && !bytes.Contains(r.Value, fmt.Appendf(nil, `"n":%d,`, n)) {
		err = fmt.Errorf("item %d is %.100s", n, r.Value)
	}
	return err
}

// queryKey queries a logical partition by an index.
func (w *workload) queryKey() error {
	key := w.all() % w.keys
	return w.query(w.keyOf(key), "SELECT VALUE c.n FROM c WHERE c.n >= 0", 3,
		func(n int64) bool { return n%w.keys == key })
}

// queryAll queries all partitions.
func (w *workload) queryAll() error {
	return w.query(azcosmos.NewPartitionKey(), "SELECT VALUE c.n FROM c", 100, func(int64) bool { return true })
}

// query reads a query in pages. It must have each item that was there at its beginning once, and no item twice.
func (w *workload) query(pk azcosmos.PartitionKey, text string, size int32, takes func(n int64) bool) error {
	all, seen := w.all(), map[int64]bool{}
	for p := w.c.NewQueryItemsPager(text, pk, &azcosmos.QueryOptions{PageSizeHint: size}); p.More(); {
		page, err := p.NextPage(bg)
		if err != nil {
			return err
		}
		for _, row := range page.Items {
			n, err := strconv.ParseInt(string(row), 10, 64)
			if err != nil || seen[n] {
				return fmt.Errorf("%s: %s comes twice", text, row)
			}
			seen[n] = true
		}
	}
	for n := range all {
		if takes(n) && !seen[n] {
			return fmt.Errorf("%s: item %d is missing", text, n)
		}
	}
	return nil
}
