package core_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/histories"
	"github.com/orrerydb/orrery/internal/race"
)

// A power failure is more than the end of a process: what was written but not synced may be lost, in any part and in
// any order. Here writers run on a file system in memory that distinguishes what is synced. At random moments it is
// copied as a power failure would leave it: everything synced, and of the rest any blocks of 4 KiB and any file names.
// Each copy is opened. Everything acknowledged must exist, writes in flight must exist completely or not at all, and
// the checker must find nothing. Then the power of the copy fails too, during that open, directly after it, and during
// the close, and the same content must exist again.

// tortureEnv names the variable with the number of cuts; without it there are a few.
const tortureEnv = "ORRERY_TORTURE"

const (
	lossWriters   = 4
	cutsInHistory = 12
	cutsInClose   = 3
)

// TestPowerLoss cuts the power of a few dozen stores, or as often as ORRERY_TORTURE says.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	cuts := race.Fewer(3, 1) * cutsInHistory
	if s := os.Getenv(tortureEnv); s != "" {
		var err error
		if cuts, err = strconv.Atoi(s); err != nil {
			t.Fatal(tortureEnv, err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	done, again, acked, inFlight, rebuilds, upgrades, splits := 0, 0, 0, 0, 0, 0, 0
	for round := 0; done < cuts; round++ {
		unmade := &powerCut{fs: vfs.NewCrashableMem()}
		again += unmade.verify(t, r)
		h := newLossHistory(t, r, round%4 == 3, round%3 == 1)
		for _, c := range h.cuts {
			for w := range c.sure {
				acked += c.sure[w]
				inFlight += c.maybe[w] - c.sure[w]
			}
			again += c.verify(t, r)
			if c.rebuilding {
				rebuilds++
			}
			if c.upgrading {
				upgrades++
			}
			if c.splitting {
				splits++
			}
			if t.Failed() {
				t.Fatalf("history %d of seed %d, cut %d: %d%% of what was not synced is there, relaxed %v", round, seed,
					done, c.percent, c.relaxed)
			}
			if done++; done%500 == 0 {
				t.Logf("%d cuts", done)
			}
		}
	}
	t.Logf("%d cuts, %d in an index rebuild, %d in an upgrade, %d in a split, and %d in recoveries and behind them: "+
		"%d steps acknowledged, %d in flight",
		done, rebuilds, upgrades, splits, again, acked, inFlight)
	if done >= 1000 && (rebuilds < done/50 || upgrades < done/50 || splits < done/50) {
		t.Errorf("of %d cuts only %d came in an index rebuild, %d in an upgrade and %d in a split", done, rebuilds,
			upgrades, splits)
	}
	if acked < done*lossWriters || inFlight == 0 {
		t.Error("the cuts came when nothing was acknowledged, or nothing in flight: this tests nothing")
	}
}

func openLossy(fs vfs.FS, relaxed bool) (*core.Engine, error) {
	k, err := pebblekv.Open("db", pebblekv.Options{
		FS: fs, MemTableMB: 1, CacheMB: 2, Relaxed: relaxed, Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		return nil, err
	}
	e, err := core.Open(bg, k, core.Options{})
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return e, nil
}

// lossHistory is one store, its writers, and the cuts during their writes.
type lossHistory struct {
	t       *testing.T
	fs      *vfs.MemFS
	eng     *core.Engine
	c       *core.Container
	relaxed bool
	stop    atomic.Bool
	states  [lossWriters]histories.State
	// By writer; the last writer creates and drops containers.
	started, acked [lossWriters + 1]atomic.Int64
	cuts           []*powerCut
	splitting      atomic.Bool // a slot is being split or joined, or waits for the end of a rebuild
}

// powerCut is what a cut leaves, and what each writer knew then.
type powerCut struct {
	fs          *vfs.MemFS
	relaxed     bool
	percent     int
	sure, maybe [lossWriters + 1]int // steps acknowledged before, and begun

	rebuilding, upgrading bool // what the next process continued
	splitting             bool // a slot was being split or joined
}

// newLossHistory starts the writers. With aged the store has an older format at first, with the writers' first steps in
// it.
func newLossHistory(t *testing.T, r *rand.Rand, relaxed, aged bool) *lossHistory {
	h := &lossHistory{t: t, fs: vfs.NewCrashableMem(), relaxed: relaxed}
	var err error
	if h.eng, err = openLossy(lateFS{h.fs}, relaxed); err != nil {
		t.Fatal(err)
	}
	h.c = newContainer(t, h.eng, core.ContainerSpec{LogMinutes: 60})
	for w := range lossWriters {
		h.states[w] = histories.State{}
	}
	if aged {
		h.age()
	}
	var wg sync.WaitGroup
	for w := range lossWriters {
		wg.Go(func() { h.write(w) })
	}
	wg.Go(h.makeAndDrop)
	wg.Go(h.rebuild)
	wg.Go(h.split)
	begun := h.slowest()
	pause := []int{4, 4, 8, 30}[r.IntN(4)] // ms at most: flushes and merges run during the longer ones
	for i := range cutsInHistory {
		time.Sleep(time.Duration(r.IntN(pause)) * time.Millisecond)
		for i == cutsInHistory-1 && h.slowest() < begun+cutsInHistory && !t.Failed() {
			// so that the last cut loses something on a machine of any speed
			time.Sleep(time.Millisecond)
		}
		h.cut(r)
	}
	h.stop.Store(true)
	wg.Wait()
	closed := make(chan error, 1)
	go func() { closed <- h.eng.Close() }()
	for range cutsInClose {
		time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
		h.cut(r)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	return h
}

// slowest returns the number of acknowledged steps of the slowest writer.
func (h *lossHistory) slowest() int64 {
	least := h.acked[0].Load()
	for w := range lossWriters {
		least = min(least, h.acked[w].Load())
	}
	return least
}

// cut copies the file system as a power cut would leave it.
func (h *lossHistory) cut(r *rand.Rand) {
	c := &powerCut{relaxed: h.relaxed, splitting: h.splitting.Load(), percent: []int{0, 10, 50, 90, 99, 100}[r.IntN(6)]}
	for w := range c.sure {
		c.sure[w] = int(h.acked[w].Load())
	}
	c.fs = h.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.percent, RNG: r})
	for w := range c.maybe {
		c.maybe[w] = int(h.started[w].Load())
	}
	h.cuts = append(h.cuts, c)
}

// run calls step again and again and counts the steps of writer w.
func (h *lossHistory) run(w int, step func(n int) error) {
	for n := int(h.acked[w].Load()); !h.stop.Load() && !h.t.Failed(); n++ {
		h.started[w].Add(1)
		if err := step(n); err != nil {
			h.t.Errorf("writer %d, step %d: %v", w, n, err)
			return
		}
		h.acked[w].Add(1)
	}
}

func (h *lossHistory) write(w int) {
	h.run(w, func(n int) error { return histories.Do(bg, h.c, w, n, h.states[w]) })
}

// agedSteps is the number of steps of each writer in a store of an older format.
const agedSteps = 48

// age runs the writers' first steps, and opens the store that an older version would have left. Then the upgrade is
// running.
func (h *lossHistory) age() {
	for w := range lossWriters {
		for n := range agedSteps {
			if err := histories.Do(bg, h.c, w, n, h.states[w]); err != nil {
				h.t.Fatal(err)
			}
		}
		h.started[w].Store(agedSteps)
		h.acked[w].Store(agedSteps)
	}
	if err := h.eng.Close(); err != nil {
		h.t.Fatal(err)
	}
	k, err := pebblekv.Open("db", pebblekv.Options{FS: h.fs, Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		h.t.Fatal(err)
	}
	age(h.t, k)
	if err := k.Close(); err != nil {
		h.t.Fatal(err)
	}
	if h.eng, err = openLossy(lateFS{h.fs}, h.relaxed); err == nil {
		h.c, err = h.eng.Container("db", "c")
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

const droppedItems = 15

// dropStep alternately creates and fills a container, and drops it.
func (h *lossHistory) dropStep(n int) error {
	id := fmt.Sprintf("d%d", n/3)
	switch n % 3 {
	case 0:
		_, err := h.eng.CreateContainer(
			bg, "db", core.ContainerSpec{ID: id, PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
		return err
	case 1:
		c, err := h.eng.Container("db", id)
		if err != nil {
			return err
		}
		var ops []core.Write
		for i := range droppedItems {
			ops = append(ops, core.Write{
				Kind: core.Create, Doc: mustDoc(h.t, fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i%3))})
		}
		return histories.Import(bg, c, ops)
	}
	return h.eng.DropContainer(bg, "db", id)
}

func (h *lossHistory) makeAndDrop() { h.run(lossWriters, h.dropStep) }

// rebuild rebuilds the index again and again, so that some cuts come during a rebuild.
func (h *lossHistory) rebuild() {
	policies := []string{"", `{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`,
		`{"indexingMode":"none"}`}
	for i := 0; !h.stop.Load(); i++ {
		spec := h.c.Spec().Clone()
		spec.IndexingPolicy = []byte(policies[i%len(policies)])
		if _, err := h.eng.ReplaceContainer(bg, "db", "c", spec); err != nil {
			h.t.Errorf("policy: %v", err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// split splits slots and joins them, again and again.
func (h *lossHistory) split() {
	at := nested(16)
	for i := 0; !h.stop.Load(); i++ {
		move := h.c.SplitSlot
		if n := len(at); i%(2*n) >= n {
			move = h.c.JoinSlots
		}
		h.splitting.Store(true)
		err := move(bg, at[i*5%len(at)])
		h.splitting.Store(false)
		if err != nil {
			h.t.Errorf("split %d: %v", i, err)
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// verify opens what a cut has left, and closes it. Then it opens what other cuts, during that open, directly after it
// and during that close, would have left. It returns the number of those.
func (p *powerCut) verify(t *testing.T, r *rand.Rand) int {
	t.Helper()
	fs := &cuttingFS{MemFS: p.fs.CrashClone(vfs.CrashCloneCfg{}), one: 25, r: r}
	e, err := openLossy(fs, p.relaxed)
	if err != nil {
		p.keep(t, p.fs)
		t.Fatal(err)
	}
	_, p.upgrading = e.Upgrading()
	if c, err := e.Container("db", "c"); err == nil {
		p.rebuilding = c.IndexProgress() < 100 && !p.upgrading
	}
	got := p.allowed(t, e)
	fs.cut(true) // after the recovery
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	again := fs.taken()
	for _, left := range again {
		e, err := openLossy(left.CrashClone(vfs.CrashCloneCfg{}), p.relaxed)
		if err != nil {
			p.keep(t, left)
			t.Fatal("after a cut in the recovery, or behind it:", err)
		}
		for w, st := range lossFound(t, e) {
			if !maps.Equal(st, got[w]) {
				t.Errorf("writer %d: a cut in the recovery, or behind it, changed %v to %v", w, got[w], st)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		p.keep(t, p.fs)
	}
	return len(again)
}

// keep copies the files to the directory in ORRERY_TORTURE_KEEP.
func (p *powerCut) keep(t *testing.T, fs vfs.FS) {
	if dir := os.Getenv(tortureEnv + "_KEEP"); dir != "" {
		to := filepath.Join(dir, fmt.Sprintf("cut-%d", time.Now().UnixNano()))
		_, err := vfs.Clone(fs, vfs.Default, "db", to)
		t.Logf("what was left is in %s, %v", to, err)
	}
}

// lossFound returns each writer's state in a store. The checker must find nothing, and the counts must be right.
func lossFound(t *testing.T, e *core.Engine) []histories.State {
	t.Helper()
	clean(t, e)
	c, err := e.Container("db", "c")
	if status.Is(err, status.NotFound) {
		return make([]histories.State, lossWriters)
	}
	if err != nil {
		t.Fatal(err)
	}
	found, err := histories.Found(bg, c, lossWriters)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// allowed checks that a store is possible after the writers' steps, and returns its state.
func (p *powerCut) allowed(t *testing.T, e *core.Engine) []histories.State {
	t.Helper()
	found := lossFound(t, e)
	for w, got := range found {
		from := p.sure[w]
		if p.relaxed {
			from = 0
		}
		if _, err := histories.Steps(w, got, from, p.maybe[w]); err != nil {
			t.Error(err)
		}
	}
	p.containers(t, e)
	return found
}

// containers checks the containers that were created and dropped.
func (p *powerCut) containers(t *testing.T, e *core.Engine) {
	t.Helper()
	sure, maybe := p.sure[lossWriters], p.maybe[lossWriters]
	if p.relaxed {
		return
	}
	for k := range maybe/3 + 1 {
		c, err := e.Container("db", fmt.Sprintf("d%d", k))
		there := err == nil
		if err != nil && !status.Is(err, status.NotFound) {
			t.Fatal(err)
		}
		must, may := sure > 3*k && maybe <= 3*k+2, maybe > 3*k && sure <= 3*k+2
		if must && !there || there && !may {
			t.Errorf("container d%d is there: %v, after %d steps acknowledged and %d begun", k, there, sure, maybe)
		}
		if there && sure > 3*k+1 && maybe <= 3*k+2 && counted(c) != droppedItems {
			t.Errorf("container d%d has %d items", k, counted(c))
		}
	}
}

// lateFS makes each sync take a moment, during which the written data isn't safe.
type lateFS struct{ *vfs.MemFS }

func (fs lateFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return late(fs.MemFS.Create(name, c))
}

func (fs lateFS) OpenDir(name string) (vfs.File, error) { return late(fs.MemFS.OpenDir(name)) }

func late(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return lateFile{f}, nil
}

type lateFile struct{ vfs.File }

func (f lateFile) Sync() error {
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
	return f.File.Sync()
}

func (f lateFile) SyncData() error { return f.Sync() }
