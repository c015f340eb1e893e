package lease_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/work"
)

var bg = context.Background()

// member is the engine of one process over a store that several share. A test can make its next write fail, and block
// all of its calls.
type member struct {
	kv.Engine
	mu     sync.Mutex
	fail   string
	pauses int
	gate   chan bool // nil: calls go on
}

func (m *member) Shared() bool { return true }

// next waits while the process is paused, and takes what the next write does.
func (m *member) next(write bool) (fail string) {
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	if gate != nil {
		<-gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if write {
		fail, m.fail = m.fail, ""
	}
	return fail
}

func (m *member) pause(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if on {
		if m.pauses++; m.pauses == 1 {
			m.gate = make(chan bool)
		}
	} else if m.pauses--; m.pauses == 0 {
		close(m.gate)
		m.gate = nil
	}
}

func (m *member) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	m.next(false)
	return m.Engine.Get(ctx, dst, key)
}

func (m *member) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	m.next(false)
	return m.Engine.Snapshot(ctx)
}

func (m *member) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	switch m.next(true) {
	case "unavailable":
		return nil, kv.ErrUnavailable
	case "unknown, not applied":
		return nil, kv.ErrUnknownOutcome
	case "unknown, applied":
		if _, err := m.Engine.Write(ctx, b, pre); err != nil {
			return nil, err
		}
		return nil, kv.ErrUnknownOutcome
	case "durability unknown":
		c, err := m.Engine.Write(ctx, b, pre)
		return unsure{c}, err
	}
	return m.Engine.Write(ctx, b, pre)
}

// unsure is a commit that is applied, and whose wait fails.
type unsure struct{ kv.Commit }

func (unsure) Wait() error { return kv.ErrUnavailable }

// proc is a process of a script.
type proc struct {
	eng       *member
	clk       *clock.Clock
	group     *work.Group
	leases    *lease.Leases
	lease     *lease.Lease
	suspended bool
}

const duration = 12 * time.Second

var (
	expiry = lease.Name{Kind: lease.Expiry, Gen: 7}
	other  = lease.Name{Kind: lease.Layout, Gen: 7}
)

// world is a store and its processes a, b and c, whose clocks are a day apart.
type world struct {
	t     *testing.T
	store kv.Engine
	procs map[string]*proc
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: kv.Checked(memkv.New()), procs: map[string]*proc{}}
	for i, name := range []string{"a", "b", "c"} {
		p := &proc{eng: &member{Engine: w.store}, group: work.New(nil),
			clk: clock.Fake(time.Date(2026, 5, 4-i, 12, 0, 0, 0, time.UTC))}
		p.leases = lease.New(p.eng, p.clk, p.group, duration)
		w.procs[name] = p
	}
	return w
}

// pass lets time pass for all processes except those whose machine is suspended.
func (w *world) pass(d time.Duration) {
	const step = duration / 12
	for ; d > 0; d -= step {
		for _, p := range w.procs {
			if !p.suspended {
				p.clk.Advance(min(step, d))
			}
		}
		time.Sleep(min(step, d))
		synctest.Wait()
	}
}

// write makes a commit under the lease's fence.
func (p *proc) write() string {
	var b kv.Batch
	b.Put([]byte("work"), []byte{1})
	switch _, err := p.eng.Write(bg, &b, p.lease.Fence()); {
	case errors.Is(err, kv.ErrConflict):
		return "refused"
	case err != nil:
		return err.Error()
	}
	return "done"
}

// do runs one line of a script and returns its result.
func (w *world) do(line string) string {
	words := strings.Fields(line)
	if words[0] == "pass" {
		d, err := time.ParseDuration(words[1])
		if err != nil {
			w.t.Fatal(err)
		}
		w.pass(d)
		return ""
	}
	p := w.procs[words[0]]
	switch what := strings.Join(words[1:], " "); what {
	case "takes", "takes another":
		n := expiry
		if what != "takes" {
			n = other
		}
		l, err := p.leases.Try(bg, n)
		switch {
		case err != nil:
			return err.Error()
		case l == nil:
			return "no"
		}
		p.lease = l
		return "yes"
	case "holds":
		return map[bool]string{true: "yes", false: "no"}[p.lease.Context().Err() == nil]
	case "releases":
		p.lease.Release()
	case "closes":
		p.group.Close()
		p.leases.Close()
	case "sweeps":
		if err := p.leases.Sweep(bg); err != nil {
			return err.Error()
		}
	case "announces itself", "stays":
		if what != "stays" {
			p.leases.Announce("I am " + words[0])
		}
		if err := p.leases.Stay(bg); err != nil {
			return err.Error()
		}
	case "knows":
		return w.known(p)
	case "pauses":
		p.eng.pause(true)
	case "wakes":
		p.eng.pause(false)
		synctest.Wait()
	case "is suspended":
		p.suspended = true
	case "is resumed":
		p.suspended = false
	case "writes":
		return p.write()
	case "sets its clock back":
		p.clk.Advance(-24 * time.Hour)
	case "leaves records":
		return fmt.Sprint(len(records(w.t, w.store)))
	case "lists":
		held, err := p.leases.List(bg)
		if err != nil {
			return err.Error()
		}
		var out []string
		for _, h := range held {
			out = append(out, fmt.Sprintf("%v %d mine %v", h.Name.Kind, h.Name.Gen, h.Mine))
		}
		return strings.Join(out, ", ")
	default:
		fail, ok := strings.CutPrefix(what, "next: ")
		if !ok {
			w.t.Fatalf("what is %q?", line)
		}
		p.eng.mu.Lock()
		defer p.eng.mu.Unlock()
		p.eng.fail = fail
	}
	return ""
}

// known returns what a process knows of the others, in the order of what they say about themselves.
func (w *world) known(p *proc) string {
	members, err := p.leases.Members(bg)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, m := range members {
		if m.Mine != (m.Process == p.leases.Process()) {
			w.t.Errorf("%+v of process %s", m, p.leases.Process())
		}
		out = append(out, fmt.Sprintf("%s for %v, silent for %v", cmp.Or(m.About, "nothing"), m.Seen, m.Silent))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// records returns the keys of all leases and signs of life.
func records(t testing.TB, e kv.Engine) (out [][]byte) {
	snap, err := e.Snapshot(bg)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	lo, _ := keys.LeaseBounds()
	_, hi := keys.ProcessBounds()
	it, err := snap.Iter(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		out = append(out, append([]byte(nil), it.Key()...))
	}
	return out
}

// The processes of a script share a store; a lease is free after 12 s without a sign of life, and its holder gives it
// up after 9 s. Behind "->" is the result of a line.
var scripts = []struct{ name, script string }{
	{"one holder", `
		a takes -> yes
		b takes -> no
		a takes -> no
		b takes another -> yes
		a lists -> expiry 7 mine true, layout 7 mine false
		a writes -> done`},
	{"a released lease is free at once", `
		a takes -> yes
		a releases
		a holds -> no
		a writes -> refused
		b takes -> yes
		b writes -> done`},
	{"a holder that renews keeps its lease", `
		a takes -> yes
		b takes -> no
		pass 1h
		b takes -> no
		a holds -> yes`},
	{"nobody renews for nothing", `
		a takes -> yes
		a releases
		pass 1m
		a leaves records -> 0`},
	{"a process that ends frees its leases at once", `
		a takes -> yes
		b takes -> no
		a closes
		a holds -> no
		b takes -> yes`},
	{"a paused holder gives up before another takes over", `
		a takes -> yes
		pass 4s
		b takes -> no
		a pauses
		pass 8s
		a holds -> yes
		pass 1s
		a holds -> no
		b takes -> no
		pass 2s
		b takes -> no
		pass 1s
		b takes -> yes
		a wakes
		a writes -> refused
		a takes -> no
		b writes -> done`},
	{"only silence that was seen counts", `
		a takes -> yes
		a pauses
		pass 1h
		b takes -> no
		pass 11s
		b takes -> no
		pass 1s
		b takes -> yes
		c takes -> no`},
	{"a machine that was suspended believes that it holds the lease", `
		a takes -> yes
		b takes -> no
		a is suspended
		pass 12s
		b takes -> yes
		b releases
		a is resumed
		a holds -> yes
		a writes -> refused
		pass 4s
		a holds -> no
		a takes another -> yes
		a takes -> yes
		a writes -> done`},
	{"a process that was ended notices it when it wants another lease", `
		a takes -> yes
		b takes -> no
		a is suspended
		pass 12s
		b takes -> yes
		a holds -> yes
		a takes another -> yes
		a writes -> done
		a takes -> no`},
	{"a clock that is set back by a day changes nothing", `
		a takes -> yes
		b takes -> no
		a sets its clock back
		b sets its clock back
		pass 1m
		a holds -> yes
		b takes -> no
		a pauses
		pass 11s
		b sets its clock back
		b takes -> no
		pass 12s
		b takes -> yes`},
	{"all leases of a silent process are free", `
		a takes -> yes
		a takes another -> yes
		b takes -> no
		a pauses
		pass 12s
		b takes -> yes
		c takes another -> yes
		a wakes
		pass 1h
		a leaves records -> 4`},
	{"a process that announces itself has a sign of life without leases", `
		a announces itself
		b announces itself
		c knows -> I am a for 0s, silent for 0s; I am b for 0s, silent for 0s
		pass 1h
		c knows -> I am a for 1h0m0s, silent for 0s; I am b for 1h0m0s, silent for 0s
		a knows -> I am a for 0s, silent for 0s; I am b for 0s, silent for 0s
		a closes
		c knows -> I am b for 1h0m0s, silent for 0s`},
	{"a process with leases announces itself with its next sign", `
		a takes -> yes
		b knows -> nothing for 0s, silent for 0s
		a announces itself
		pass 4s
		b knows -> I am a for 4s, silent for 0s
		a releases
		pass 1h
		b knows -> I am a for 1h0m4s, silent for 0s`},
	{"a process that was paused is listed until it is ended, and stays when it goes on", `
		a announces itself
		b announces itself
		b knows -> I am a for 0s, silent for 0s; I am b for 0s, silent for 0s
		a pauses
		pass 11s
		b knows -> I am a for 11s, silent for 11s; I am b for 11s, silent for 0s
		pass 1s
		b sweeps
		b knows -> I am b for 12s, silent for 0s
		a wakes
		a stays
		b knows -> I am a for 0s, silent for 0s; I am b for 12s, silent for 0s`},
	{"a process with a new sign of life is one process", `
		a announces itself
		b knows -> I am a for 0s, silent for 0s
		a pauses
		pass 9s
		a wakes
		a stays
		a leaves records -> 2
		b knows -> I am a for 9s, silent for 0s
		pass 12s
		b sweeps
		b leaves records -> 1`},
	{"it isn't known whether an announcement was stored", `
		a next: unknown, applied
		a announces itself -> kv: unavailable, kv: unknown outcome
		a stays
		b knows -> I am a for 0s, silent for 0s`},
	{"sweeping removes what nobody wants", `
		a takes -> yes
		a pauses
		b sweeps
		pass 11s
		b sweeps
		b leaves records -> 2
		pass 1s
		b sweeps
		b leaves records -> 1
		b sweeps
		b leaves records -> 0`},
	{"a process doesn't sweep its own leases", `
		a takes -> yes
		a sweeps
		pass 1m
		a sweeps
		a holds -> yes
		a leaves records -> 2`},
	{"the sign of life fails to appear", `
		a next: unavailable
		a takes -> kv: unavailable
		a takes -> yes`},
	{"it isn't known whether the sign of life has appeared", `
		a next: unknown, applied
		a takes -> kv: unavailable, kv: unknown outcome
		a takes -> yes
		a writes -> done`},
	{"an acquisition of unknown outcome was applied", `
		a takes another -> yes
		a next: unknown, applied
		a takes -> yes
		b takes -> no
		a writes -> done`},
	{"an acquisition of unknown outcome was not applied", `
		a takes another -> yes
		a next: unknown, not applied
		a takes -> yes
		b takes -> no
		a writes -> done`},
	{"an acquisition of unknown durability", `
		a takes another -> yes
		a next: durability unknown
		a takes -> yes
		a writes -> done`},
	{"a renewal of unknown outcome was applied", `
		a takes -> yes
		b takes -> no
		a next: unknown, applied
		pass 1m
		a holds -> yes
		b takes -> no`},
	{"a renewal of unknown outcome was not applied", `
		a takes -> yes
		b takes -> no
		a next: unknown, not applied
		pass 1m
		a holds -> yes
		b takes -> no`},
	{"a renewal that failed is repeated in time", `
		a takes -> yes
		b takes -> no
		a next: unavailable
		pass 1m
		a holds -> yes
		b takes -> no`},
	{"a release of unknown outcome was not applied", `
		a takes -> yes
		a next: unknown, not applied
		a releases
		b takes -> no
		pass 4s
		b takes -> yes`},
	{"a release that failed doesn't keep the process from its lease", `
		a takes -> yes
		a next: unavailable
		a releases
		a takes -> yes
		pass 1m
		a holds -> yes
		a writes -> done
		b takes -> no`},
	{"a release of unknown outcome was applied", `
		a takes -> yes
		a next: unknown, applied
		a releases
		b takes -> yes
		pass 1m
		b holds -> yes`},
	{"a takeover of unknown outcome was applied", `
		a takes -> yes
		b takes -> no
		a pauses
		pass 12s
		b takes another -> yes
		b next: unknown, applied
		b takes -> yes
		a wakes
		a holds -> no`},
	{"a takeover of unknown outcome was not applied", `
		a takes -> yes
		b takes -> no
		a pauses
		pass 12s
		b takes another -> yes
		b next: unknown, not applied
		b takes -> yes
		a wakes
		a holds -> no`},
}

func TestScripts(t *testing.T) {
	for _, c := range scripts {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				lines := bufio.NewScanner(strings.NewReader(c.script))
				for n := 0; lines.Scan(); n++ {
					line, want, _ := strings.Cut(strings.TrimSpace(lines.Text()), "->")
					if line == "" {
						continue
					}
					if got := strings.ReplaceAll(w.do(line), "\n", ", "); got != strings.TrimSpace(want) {
						t.Errorf("line %d, %s: %q", n, line, got)
					}
				}
				for _, p := range w.procs {
					if p.eng.gate != nil {
						p.eng.pause(false)
					}
					p.group.Close()
					p.leases.Close()
				}
			})
		})
	}
}

// Acquire waits, also for a holder in the same process, and for one that dies. It ends with its ctx and with the
// process's background work.
func TestAcquireWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := kv.Checked(memkv.New())
		var procs []*proc
		for range 2 {
			p := &proc{eng: &member{Engine: store}, group: work.New(nil)}
			p.leases = lease.New(p.eng, clock.New(), p.group, duration)
			procs = append(procs, p)
		}
		a, b := procs[0], procs[1]
		first, err := a.leases.Acquire(bg, expiry)
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 8)
		wait := func(name string, p *proc) {
			go func() {
				l, err := p.leases.Acquire(bg, expiry)
				if err != nil {
					t.Error(err)
					return
				}
				order <- name
				time.Sleep(time.Second)
				l.Release()
			}()
			synctest.Wait()
		}
		wait("same process", a)
		time.Sleep(time.Minute)
		if len(order) > 0 {
			t.Errorf("%s has a lease that is held", <-order)
		}
		first.Release()
		synctest.Wait()
		if got := <-order; got != "same process" || len(order) > 0 {
			t.Errorf("%s is next", got)
		}
		wait("other process", b)
		time.Sleep(duration/8 + time.Second)
		if got := <-order; got != "other process" {
			t.Errorf("%s is next", got)
		}
		time.Sleep(time.Minute)
		brief, err := a.leases.Acquire(bg, expiry)
		if err != nil {
			t.Fatal(err)
		}
		wait("waits shortly", b)
		time.Sleep(duration / 200)
		begun := time.Now()
		brief.Release()
		<-order
		if took := time.Since(begun); took > duration/100 {
			t.Errorf("a lease that was held for a moment is found free after %v", took)
		}
		time.Sleep(time.Minute)

		ended, end := context.WithCancel(bg)
		l, err := b.leases.Acquire(bg, expiry)
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, 2)
		go func() { _, err := a.leases.Acquire(ended, expiry); errs <- err }()
		time.Sleep(time.Second)
		end()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the ctx: %v", err)
		}
		wait("heir", a)
		b.eng.pause(true)
		begun = time.Now()
		<-order
		if took := time.Since(begun); took < duration*3/4 || took > duration*5/4 {
			t.Errorf("a dead process is followed after %v", took)
		}
		if l.Context().Err() == nil {
			t.Error("the former holder still believes")
		}
		b.eng.pause(false)
		l.Release()
		time.Sleep(time.Second)
		if _, err = a.leases.Acquire(bg, other); err != nil {
			t.Fatal(err)
		}
		go func() { _, err := b.leases.Acquire(bg, other); errs <- err }()
		time.Sleep(time.Second)
		b.group.Close()
		if err := <-errs; !errors.Is(err, kv.ErrClosed) {
			t.Errorf("after the end of background work: %v", err)
		}
		a.group.Close()
		a.leases.Close()
		b.leases.Close()
	})
}

// Many goroutines of three processes want three leases, while processes are paused at random. Each holder increases a
// counter by a read and a write, whose only precondition is the fence. So the counters are right only if no two
// holders of a lease can write.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := kv.Checked(memkv.New())
		var procs []*proc
		for range 3 {
			p := &proc{eng: &member{Engine: store}, group: work.New(nil)}
			p.leases = lease.New(p.eng, clock.New(), p.group, duration)
			procs = append(procs, p)
		}
		const each = 20
		counter := func(n lease.Name) []byte { return fmt.Appendf(nil, "counter %d", n.Gen) }
		var wg sync.WaitGroup
		var mu sync.Mutex
		done, refused := map[lease.Name]int{}, 0
		for i, p := range procs {
			for g := range 3 {
				wg.Go(func() {
					for k := range each {
						n := lease.Name{Kind: lease.Layout, Gen: uint32((k + g) % 3)}
						l, err := p.leases.Acquire(bg, n)
						if err != nil {
							t.Error(err)
							return
						}
						was, _ := store.Get(bg, nil, counter(n))
						if pause := time.Duration(k*7%5) * duration / 2; i == k%3 {
							p.eng.pause(true)
							time.Sleep(pause)
							p.eng.pause(false)
						} else {
							time.Sleep(time.Millisecond)
						}
						var b kv.Batch
						b.Put(counter(n), append(was, 'x'))
						_, err = store.Write(bg, &b, l.Fence())
						mu.Lock()
						if err == nil {
							done[n]++
						} else {
							refused++
						}
						mu.Unlock()
						l.Release()
					}
				})
			}
		}
		wg.Wait()
		all := 0
		for n, k := range done {
			all += k
			if is, _ := store.Get(bg, nil, counter(n)); len(is) != k {
				t.Errorf("lease %d: %d writes, and the counter is %d", n.Gen, k, len(is))
			}
		}
		if t.Logf("%d writes, %d refused", all, refused); refused < 5 || all+refused != 9*each {
			t.Error("the test hasn't tested much")
		}
		for _, p := range procs {
			p.group.Close()
			p.leases.Close()
		}
		for range 3 { // it sees the processes, ends them, and removes their leases
			if err := procs[0].leases.Sweep(bg); err != nil {
				t.Error(err)
			}
			time.Sleep(duration)
		}
		if left := records(t, store); len(left) > 0 {
			t.Errorf("records are left: %x", left)
		}
	})
}

// On an engine that isn't shared a lease is always granted, writes nothing and starts nothing.
func TestALocalEngineHasNoLeases(t *testing.T) {
	store, group := memkv.New(), work.New(nil)
	m := lease.New(store, clock.New(), group, 0)
	var l *lease.Lease
	cost := testing.AllocsPerRun(100, func() {
		var err error
		if l, err = m.Acquire(bg, expiry); err != nil {
			t.Fatal(err)
		}
		l.Release()
	})
	if cost > 1 {
		t.Errorf("a lease takes %v allocations", cost)
	}
	again, err := m.Try(bg, expiry)
	if again == nil || err != nil || len(again.Fence()) > 0 || again.Context() != bg {
		t.Errorf("%+v, %v", again, err)
	}
	if held, err := m.List(bg); len(held) > 0 || err != nil || m.Sweep(bg) != nil {
		t.Errorf("%v, %v", held, err)
	}
	m.Announce("nobody else")
	if all, err := m.Members(bg); m.Stay(bg) != nil || len(all) > 0 || err != nil || m.Process() != "" {
		t.Errorf("%v, %v, process %q", all, err, m.Process())
	}
	if k := records(t, store); len(k) > 0 {
		t.Errorf("keys: %x", k)
	}
	m.Close()
	group.Close()
}

// A record that this version can't read isn't taken for a free lease.
func TestUnreadableRecords(t *testing.T) {
	for name, key := range map[string][]byte{
		"lease":        keys.AppendLease(nil, byte(expiry.Kind), expiry.Gen),
		"sign of life": keys.AppendProcess(nil, [16]byte{1}),
	} {
		eng, group := &member{Engine: memkv.New()}, work.New(nil)
		var b kv.Batch
		b.Put(keys.AppendLease(nil, byte(expiry.Kind), expiry.Gen), append([]byte{1, 1}, make([]byte, 23)...))
		b.Put(key, []byte{9, 9})
		if _, err := eng.Write(bg, &b, nil); err != nil {
			t.Fatal(err)
		}
		m := lease.New(eng, clock.New(), group, 0)
		if l, err := m.Try(bg, expiry); l != nil || err == nil || !strings.Contains(err.Error(), "unknown format") {
			t.Errorf("%s: %v, %v", name, l, err)
		}
		group.Close()
		m.Close()
	}
}

func BenchmarkLocalAcquire(b *testing.B) {
	m := lease.New(memkv.New(), clock.New(), work.New(nil), 0)
	for b.Loop() {
		l, _ := m.Acquire(bg, expiry)
		l.Release()
	}
}
