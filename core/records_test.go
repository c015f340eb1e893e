package core_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

var record = core.RecordName{Kind: core.CursorRecord, Name: "12345678"}

// A record is changed by the one who has read its last version. Others are told so, whatever the outcome of calls.
func TestRecordsOfSeveralProcesses(t *testing.T) {
	ps := startProcesses(t, 3, kvtest.Faults{Most: time.Millisecond, Unknown: 0.2, Late: 5 * time.Millisecond})
	const rounds = 20
	var count, refused, unsure atomic.Int64
	ps.each(rounds, func(p, _ int) {
		for {
			was, err := ps.all[p].Record(bg, record)
			if err != nil {
				t.Error(err)
				return
			}
			n := 0
			if was.Exists() {
				fmt.Sscan(string(was.Data), &n)
			}
			_, ok, err := ps.all[p].WriteRecord(bg, record, was, fmt.Append(nil, n+1), time.Hour, nil)
			switch {
			case status.Is(err, status.UnknownOutcome):
				unsure.Add(1)
			case err != nil:
				t.Error(err)
				return
			case ok:
				count.Add(1)
				return
			default:
				refused.Add(1)
			}
		}
	})
	ps.store.SetFaults(kvtest.Faults{}) // the following outcomes are known
	is, err := ps.all[0].Record(bg, record)
	n := int64(0)
	fmt.Sscan(string(is.Data), &n)
	if err != nil || n < 3*rounds || n > 3*rounds+unsure.Load() || count.Load() != 3*rounds || refused.Load() == 0 {
		t.Errorf("%d after %d changes, %d refused, %d unknown, %v", n, count.Load(), refused.Load(), unsure.Load(), err)
	}
	if ok, err := ps.all[1].DropRecord(bg, record, core.Record{}); ok || err != nil {
		t.Errorf("an old version was dropped: %v, %v", ok, err)
	}
	if ok, err := ps.all[1].DropRecord(bg, record, is); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if is, err = ps.all[2].Record(bg, record); is.Exists() || err != nil {
		t.Errorf("%q, %v", is.Data, err)
	}
}

// A write with a record is made once, however often it is repeated and at whatever process. With faults too, the number
// in the item is the number of different attempts.
func TestWriteWithRecord(t *testing.T) {
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	ps.store.SetFaults(kvtest.Faults{Most: time.Millisecond, Unknown: 0.2, Late: 5 * time.Millisecond})
	done := errors.New("done before")
	add := func(p, txn int) error {
		w := core.Write{Kind: core.Update, PK: pk("a"), ID: value.StringOf("1")}
		w.Update = func(old *core.Item) (core.Change, error) {
			n := 0
			if old != nil {
				n = int(value.ObjectOf(old.Doc).Get("n").Int())
			}
			return core.Change{Doc: mustDoc(t, fmt.Sprintf(`{"id":"1","pk":"a","n":%d}`, n+1))}, nil
		}
		w.With = &core.Attached{Name: record, Idle: time.Hour, Next: func() []byte { return fmt.Append(nil, txn) },
			Check: func(was core.Record) error {
				if string(was.Data) == fmt.Sprint(txn) {
					return done
				}
				return nil
			}}
		for range 100 {
			_, err := cs[p].Write(bg, w)
			if err == nil || errors.Is(err, done) {
				return err
			}
			if !status.Is(err, status.UnknownOutcome) && !status.Is(err, status.Unavailable) {
				t.Fatal(err)
			}
		}
		return errors.New("no end")
	}
	const txns = 30
	for txn := range txns {
		_ = add(txn%2, txn)
		if err := add(1-txn%2, txn); !errors.Is(err, done) {
			t.Fatalf("repeated %d: %v", txn, err)
		}
	}
	it, err := cs[0].Read(bg, pk("a"), value.StringOf("1"))
	if err != nil || value.ObjectOf(it.Doc).Get("n").Int() != txns {
		t.Errorf("%v, %v", it, err)
	}
	// A write that is refused, or changes nothing, leaves the record as it is.
	for _, w := range []core.Write{{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)},
		{Kind: core.Update, PK: pk("a"), ID: value.StringOf("1"),
			Update: func(*core.Item) (core.Change, error) { return core.Change{Keep: true}, nil }}} {
		w.With = &core.Attached{Name: record, Idle: time.Hour, Next: func() []byte { return []byte("other") },
			Check: func(core.Record) error { return nil }}
		_, _ = cs[0].Write(bg, w)
		if is, err := ps.all[1].Record(bg, record); err != nil || string(is.Data) != fmt.Sprint(txns-1) {
			t.Errorf("%q, %v", is.Data, err)
		}
	}
}

// Parts are added to a record by whoever has its last version, and are removed with it.
func TestPartsOfRecords(t *testing.T) {
	ps := startProcesses(t, 2, kvtest.Faults{Most: time.Millisecond, Unknown: 0.2, Late: 2 * time.Millisecond})
	var was core.Record
	write := func(p int, was core.Record, parts ...[]byte) (core.Record, bool) {
		for {
			now, ok, err := ps.all[p].WriteRecord(bg, record, was, []byte("data"), time.Hour, parts...)
			if err == nil {
				return now, ok
			}
			if !status.Is(err, status.UnknownOutcome) {
				t.Fatal(err)
			}
			if is, err := ps.all[p].Record(bg, record); err != nil || !is.Same(&was) {
				t.Fatalf("%q, %v", is.Data, err)
			}
		}
	}
	parts := func(first, n int) string {
		b, ok, err := ps.all[1].RecordParts(bg, []byte("+"), record, first, n)
		return fmt.Sprintf("%s %v %v", b, ok, err)
	}
	first, _ := write(0, was, []byte("a"), []byte("b"))
	second, _ := write(1, first, []byte("c"))
	third, _ := write(0, second)
	if _, ok := write(0, first, []byte("x")); ok {
		t.Error("an old version was replaced")
	}
	if got := parts(0, 3) + parts(1, 1) + parts(2, 2); got != "+abc true <nil>+b true <nil>+c false <nil>" {
		t.Error(got)
	}
	is, err := ps.all[1].Record(bg, record)
	if again := is.Clone(); err != nil || !is.Same(&third) || string(again.Data) != "data" || !again.Same(&third) {
		t.Errorf("%q, %v", is.Data, err)
	}
	ps.store.SetFaults(kvtest.Faults{})
	if ok, err := ps.all[1].DropRecord(bg, record, is); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	for i := range 3 {
		if got := parts(i, 1); got != "+ false <nil>" {
			t.Errorf("part %d is left: %s", i, got)
		}
	}
}

// Records that nobody writes for their time are removed with their parts, by the process that has the lease.
func TestRecordsExpire(t *testing.T) {
	ps := startProcesses(t, 2, kvtest.Faults{})
	names := []core.RecordName{{Kind: core.CursorRecord, Name: "idle"}, {Kind: core.CursorRecord, Name: "used"}}
	at := map[core.RecordName]core.Record{}
	for _, n := range names {
		for _, part := range []string{"pa", "rt"} { // a process may end between the parts
			r, ok, err := ps.all[0].WriteRecord(bg, n, at[n], []byte("data"), 10*time.Second, []byte(part))
			if !ok || err != nil {
				t.Fatal(err)
			}
			at[n] = r
		}
	}
	turn := func() {
		for _, e := range ps.all {
			if err := e.ExpireRecords(bg); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func() (names []string) {
		for _, n := range []string{"idle", "used"} {
			name := core.RecordName{Kind: core.CursorRecord, Name: n}
			r, err := ps.all[1].Record(bg, name)
			part, ok, perr := ps.all[1].RecordParts(bg, nil, name, 0, 2)
			second, has, serr := ps.all[1].RecordParts(bg, nil, name, 1, 1)
			if err := errors.Join(err, perr, serr); err != nil || r.Exists() != (ok && string(part) == "part") ||
				r.Exists() != has {
				t.Fatalf("%s: %q with %q and %q, %v", n, r.Data, part, second, err)
			}
			if r.Exists() {
				names = append(names, n)
			}
		}
		return names
	}
	advance := func(d time.Duration) {
		for _, c := range ps.clks {
			c.Advance(d)
		}
	}
	for step, want := range []string{"[idle used]", "[idle used]", "[used]"} {
		turn()
		if got := fmt.Sprint(left()); got != want {
			t.Fatalf("step %d: %s is left, not %s", step, got, want)
		}
		advance(6 * time.Second)
		r, ok, err := ps.all[1].WriteRecord(bg, names[1], at[names[1]], []byte("data"), 10*time.Second)
		if !ok || err != nil {
			t.Fatal(err)
		}
		at[names[1]] = r
	}
}
