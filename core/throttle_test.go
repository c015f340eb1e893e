package core_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// throttled is an engine that limits consumption, and its clock.
func throttled(t *testing.T) (*core.Engine, *clock.Clock) {
	t.Helper()
	clk := clock.Fake(time.Unix(1700000000, 0))
	e, err := core.Open(bg, ownEngines["mem"](t), core.Options{Clock: clk, Throttle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
			t.Errorf("check: %v %v", err, problems)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, clk
}

// throttleKinds are the requests on one item or key, each with its partition key.
var throttleKinds = map[string]func(c *core.Container, key string) error{
	"read": func(c *core.Container, key string) error {
		_, err := c.Read(bg, pk(key), value.StringOf("1"))
		return err
	},
	"read into": func(c *core.Container, key string) error {
		_, err := c.ReadInto(bg, new(core.Item), new(core.Mem), pk(key), value.StringOf("1"))
		return err
	},
	"write": func(c *core.Container, key string) error {
		_, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk(key), ID: value.StringOf("1")})
		return err
	},
	"transaction": func(c *core.Container, key string) error {
		_, err := c.WithTx(bg, pk(key), func(tx *core.Tx) error {
			_, err := tx.Read(value.StringOf("1"))
			return err
		})
		return err
	},
	"query of a key": func(c *core.Container, key string) error {
		r, err := c.Query(bg, &exec.Query{PK: pk(key)})
		if err == nil {
			for r.Next() {
			}
			err = r.Err()
			r.Close()
		}
		return err
	},
	"feed of a key": func(c *core.Container, key string) error {
		_, err := c.Feed(bg, feed.Scope{PK: pk(key)}, feed.Start(), 10)
		return err
	},
	"writes": func(c *core.Container, key string) error {
		out := c.WriteMany(bg, []core.Write{{Kind: core.Delete, PK: pk(key), ID: value.StringOf("1")}}, false)
		return out[0].Err
	},
}

// exhaust writes until the partition of a key has no request units, and returns the sum of the charges.
func exhaust(t *testing.T, c *core.Container, key string) (sum float64) {
	t.Helper()
	for i := range 10000 {
		r, err := c.Write(bg, core.Write{Kind: core.Upsert,
			Doc: mustDoc(t, fmt.Sprintf(`{"id":"%d","pk":"%s","text":"%s"}`, i%7, key, strings.Repeat("x", 5000)))})
		if status.Is(err, status.TooManyRequests) {
			return sum
		}
		if err != nil {
			t.Fatal(err)
		}
		sum += r.Charge
	}
	t.Fatal("nothing was refused")
	return 0
}

// TestThrottle: a physical partition serves one second's share of the throughput at once, and then its share of it. A
// request above that is refused before its work with 429/3200 and the time after which to retry. Other partitions serve
// what is theirs, and a request that needs both is refused.
func TestThrottle(t *testing.T) {
	e, clk := throttled(t)
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}})
	const hot = "a"
	cold := ""
	at := func(key string) string {
		p, err := c.PartitionOf(pk(key))
		if err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	for i := 0; cold == ""; i++ {
		if k := fmt.Sprint("k", i); at(k) != at(hot) {
			cold = k
		}
	}
	for _, k := range []string{hot, cold} {
		put(t, c, core.Create, `{"id":"1","pk":"`+k+`"}`)
	}
	clk.Advance(time.Second)
	if sum := exhaust(t, c, hot); sum < 10000 || sum > 10010 {
		t.Errorf("%.2f RU were served at once, want those of a second", sum)
	}
	before, refused := lastLSN(c), e.Throttled()
	for name, do := range throttleKinds {
		err := do(c, hot)
		wantCode(t, err, status.TooManyRequests, status.SubThrottled)
		if e := status.From(err); e.RetryAfter != time.Millisecond {
			t.Errorf("%s: retry after %v", name, e.RetryAfter)
		}
		if name != "write" && name != "writes" {
			if err := do(c, cold); err != nil {
				t.Errorf("%s in the other partition: %v", name, err)
			}
		}
	}
	if n := e.Throttled() - refused; n != int64(len(throttleKinds)) {
		t.Errorf("%d refused, want %d", n, len(throttleKinds))
	}
	_, err := c.Query(bg, &exec.Query{})
	wantCode(t, err, status.TooManyRequests, status.SubThrottled)
	_, err = c.Feed(bg, feed.Scope{}, feed.Start(), 10)
	wantCode(t, err, status.TooManyRequests, status.SubThrottled)
	_, err = c.FeedVersions(bg, feed.Scope{}, feed.Start(), 10)
	wantCode(t, err, status.TooManyRequests, status.SubThrottled)
	if lastLSN(c) != before {
		t.Error("a refused request has written")
	}
	clk.Advance(time.Second)
	for name, do := range throttleKinds {
		if err := do(c, hot); err != nil && !status.Is(err, status.NotFound) {
			t.Errorf("%s after a second: %v", name, err)
		}
	}
	uses := c.Consumption()
	if len(uses) != 2 || uses[0].Share != 10000 {
		t.Fatalf("%+v", uses)
	}
}

// TestThrottleInTx: a transaction that has begun goes on without request units, its queries too. They are counted.
func TestThrottleInTx(t *testing.T) {
	e, _ := throttled(t)
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 400}})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
		exhaust(t, c, "a")
		before := c.Consumption()[0].Total
		r, err := c.QueryTx(bg, tx, &exec.Query{})
		if err != nil {
			return err
		}
		n := 0
		for r.Next() {
			n++
		}
		r.Close()
		if used := c.Consumption()[0].Total - before; n != 1 || used <= 0 || r.Err() != nil {
			t.Errorf("%d items for %.2f RU: %v", n, used, r.Err())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	_, err = c.WithTx(bg, pk("a"), func(*core.Tx) error { return nil })
	wantCode(t, err, status.TooManyRequests, status.SubThrottled)
}

// TestThrottleDebt: a request that costs more than what is left is served whole, and the ones after it wait until time
// has paid for it. A greater throughput pays faster.
func TestThrottleDebt(t *testing.T) {
	e, clk := throttled(t)
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 400}})
	clk.Advance(time.Hour) // a long pause gives no more than a second's
	r := put(t, c, core.Create, `{"id":"1","pk":"a","text":"`+strings.Repeat("x", 1<<20)+`"}`)
	_, err := c.Read(bg, pk("a"), value.StringOf("1"))
	wantCode(t, err, status.TooManyRequests, status.SubThrottled)
	want := time.Duration((r.Charge - 400) / 400 * float64(time.Second))
	if wait := status.From(err).RetryAfter; wait < want || wait > want+2*time.Millisecond {
		t.Errorf("retry after %v for %.2f RU, want %v", wait, r.Charge, want)
	}
	clk.Advance(want - 5*time.Millisecond)
	_, err = c.Read(bg, pk("a"), value.StringOf("1"))
	wantCode(t, err, status.TooManyRequests, status.SubThrottled)
	clk.Advance(10 * time.Millisecond)
	if _, err := c.Read(bg, pk("a"), value.StringOf("1")); err != nil {
		t.Error(err)
	}
	exhaust(t, c, "a")
	clk.Set(clk.Now().Add(-time.Hour)) // time passes as before
	_, err = c.Read(bg, pk("a"), value.StringOf("1"))
	wantCode(t, err, status.TooManyRequests, status.SubThrottled)
	if wait := status.From(err).RetryAfter; wait > time.Second {
		t.Errorf("retry after %v when the clock was set back", wait)
	}
	clk.Advance(time.Second)
	if _, err := c.Read(bg, pk("a"), value.StringOf("1")); err != nil {
		t.Error(err)
	}
}

// TestThrottleShared: containers without a throughput of their own share that of their database. A container with its
// own doesn't take part. Without any throughput there is no limit.
func TestThrottleShared(t *testing.T) {
	e, clk := throttled(t)
	if _, err := e.CreateDatabase(bg, core.DatabaseSpec{ID: "shared",
		Throughput: core.Throughput{AutoscaleMax: 1000}}); err != nil {
		t.Fatal(err)
	}
	make := func(db, id string, n int) *core.Container {
		c, err := e.CreateContainer(bg, db, core.ContainerSpec{ID: id, Throughput: core.Throughput{Manual: n},
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b, own := make("shared", "a", 0), make("shared", "b", 0), make("shared", "own", 400)
	if sum := exhaust(t, a, "x"); sum < 1000 || sum > 1010 {
		t.Errorf("%.2f RU of 1000", sum)
	}
	_, err := b.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"y"}`)})
	wantCode(t, err, status.TooManyRequests, status.SubThrottled)
	put(t, own, core.Create, `{"id":"1","pk":"y"}`)
	if _, err := e.ReplaceDatabase(bg, core.DatabaseSpec{ID: "shared",
		Throughput: core.Throughput{Manual: 10000}}); err != nil {
		t.Fatal(err)
	}
	clk.Advance(2 * time.Second)
	if sum := exhaust(t, b, "x"); sum < 10000 || sum > 10010 {
		t.Errorf("%.2f RU of 10,000", sum)
	}
	free := newContainer(t, e, core.ContainerSpec{})
	for i := range 2000 {
		put(t, free, core.Upsert, fmt.Sprintf(`{"id":"%d","pk":"a"}`, i%10))
	}
}

// TestThrottleMany: of the writes of a bulk those are done for which request units are left, and the others are refused
// one by one. An ordered bulk ends at the first that is refused.
func TestThrottleMany(t *testing.T) {
	e, clk := throttled(t)
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 400}})
	for round, ordered := range []bool{false, true} {
		clk.Advance(time.Minute)
		var ws []core.Write
		for i := range 200 {
			ws = append(ws, core.Write{Kind: core.Create,
				Doc: mustDoc(t, fmt.Sprintf(`{"id":"%d-%d","pk":"a"}`, round, i))})
		}
		before := counted(c)
		out := c.WriteMany(bg, ws, ordered)
		done, refused, sum := 0, 0, 0.0
		for _, o := range out {
			switch {
			case o.Err == nil:
				done++
				sum += o.Result.Charge
			case status.Is(o.Err, status.TooManyRequests):
				refused++
			default:
				t.Fatal(o.Err)
			}
		}
		if want := int(math.Ceil(400 / ru.Write(0, 0))); done != want || counted(c)-before != int64(want) {
			t.Errorf("ordered %v: %d of 200 writes were done, %d are there; want %d", ordered, done, counted(c)-before,
				want)
		}
		if ordered && refused != 1 || !ordered && done+refused != 200 {
			t.Errorf("ordered %v: %d outcomes, %d refused", ordered, len(out), refused)
		}
		_, err := c.Read(bg, pk("a"), value.StringOf("x"))
		wantCode(t, err, status.TooManyRequests, status.SubThrottled)
		if want := time.Duration((sum - 400) / 400 * float64(time.Second)); status.From(err).RetryAfter < want {
			t.Errorf("ordered %v: retry after %v for %.2f RU", ordered, status.From(err).RetryAfter, sum)
		}
	}
}

// TestConsumption: what requests cost is counted in the physical partition of their key, or in equal parts in those
// that they read. Without the limit nothing is refused.
func TestConsumption(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}})
		inOneProcess(c)
		want := map[string]float64{}
		add := func(key string, charge float64) {
			p, err := c.PartitionOf(pk(key))
			if err != nil {
				t.Fatal(err)
			}
			want[p.ID] += charge
		}
		same := func(what string) {
			t.Helper()
			for _, u := range c.Consumption() {
				if math.Abs(u.Total-want[u.ID]) > 0.02 {
					t.Fatalf("after %s: partition %s has %.2f RU, want %.2f", what, u.ID, u.Total, want[u.ID])
				}
			}
		}
		for _, key := range []string{"a", "b", "c", "d"} {
			add(key, put(t, c, core.Create, `{"id":"1","pk":"`+key+`"}`).Charge)
		}
		same("creates")
		if _, err := c.Read(bg, pk("a"), value.StringOf("1")); err != nil {
			t.Fatal(err)
		}
		add("a", 1)
		if _, err := c.Read(bg, pk("b"), value.StringOf("2")); !status.Is(err, status.NotFound) {
			t.Fatal(err)
		}
		add("b", 1)
		same("reads")
		_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"c"}`)})
		wantCode(t, err, status.Conflict, 0)
		add("c", ru.Refused)
		same("a conflict")
		for _, o := range c.WriteMany(bg, []core.Write{{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)},
			{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"d"}`)}}, false) {
			if o.Err == nil {
				add("a", o.Result.Charge)
			} else {
				add("d", ru.Refused)
			}
		}
		same("several writes")
		done, err := c.WithTx(bg, pk("b"), func(tx *core.Tx) error {
			_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"3","pk":"b"}`)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		add("b", done.Charge)
		refused := errors.New("changed its mind")
		if _, err := c.WithTx(bg, pk("b"), func(tx *core.Tx) error {
			if _, err := tx.Read(value.StringOf("3")); err != nil {
				return err
			}
			return refused
		}); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		add("b", 1)
		same("transactions")
		for _, q := range []exec.Query{{}, {PK: pk("a")}} {
			r, err := c.Query(bg, &q)
			if err != nil {
				t.Fatal(err)
			}
			for r.Next() {
			}
			r.Close()
			r.Close()
			if charge := r.Stats().Charge(); q.PK != nil {
				add("a", charge)
			} else {
				want["0"], want["1"] = want["0"]+charge/2, want["1"]+charge/2
			}
		}
		same("queries")
		p, err := c.Feed(bg, feed.Scope{PK: pk("a")}, feed.Start(), 10)
		if err != nil || len(p.Items) != 2 {
			t.Fatal(len(p.Items), err)
		}
		add("a", core.FeedCharge(&p))
		same("a feed")
		if charge, err := c.SpendCount(feed.Scope{}); err != nil || charge != 2*ru.QueryBase {
			t.Fatal(charge, err)
		}
		want["0"], want["1"] = want["0"]+ru.QueryBase, want["1"]+ru.QueryBase
		if charge, err := c.SpendCount(feed.Scope{PK: pk("a")}); err != nil || charge != ru.QueryBase {
			t.Fatal(charge, err)
		}
		add("a", ru.QueryBase)
		same("counts")
	})
}
