package crashtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/histories"
)

const (
	fewKills = 20 // the default without ORRERY_KILLS
	writers  = 8
	childEnv = "ORRERY_CRASH_CHILD" // set: this process will be killed
	database = "db"
	coll     = "c"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(restoreEnv); dir != "" {
		if err := restoreChild(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir, strings.Split(os.Getenv(childEnv+"_AT"), ","),
			os.Getenv(childEnv+"_RELAXED") != ""); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func openStore(ctx context.Context, dir string, relaxed bool) (*core.Engine, *core.Container, error) {
	// A small memtable, so that flushes and compactions are interrupted too.
	e, err := pebblekv.Open(dir, pebblekv.Options{MemTableMB: 1, Relaxed: relaxed})
	if err != nil {
		return nil, nil, err
	}
	eng, err := core.Open(ctx, e, core.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	if _, err := eng.EnsureDatabase(ctx, database); err != nil {
		return nil, nil, errors.Join(err, eng.Close())
	}
	c, err := eng.Container(database, coll)
	if status.Is(err, status.NotFound) {
		c, err = eng.CreateContainer(ctx, database,
			core.ContainerSpec{ID: coll, PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	}
	if err != nil {
		return nil, nil, errors.Join(err, eng.Close())
	}
	return eng, c, nil
}

// child writes until it is killed. It prints what was acknowledged: "ack <writer> <n>".
func child(dir string, at []string, relaxed bool) error {
	ctx := context.Background()
	eng, c, err := openStore(ctx, dir, relaxed)
	if err != nil {
		return err
	}
	if os.Getenv(journalEnv) != "" {
		if _, err := eng.RecordChanges(ctx, journal.Namespace{}); err != nil {
			return err
		}
	}
	splits := os.Getenv(splitEnv) != ""
	if splits { // before the first step, from which on the child may be killed
		if err := addBallast(ctx, c); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	acked := make([]int, writers)
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		first, err := strconv.Atoi(at[w])
		if err != nil {
			return err
		}
		mu.Lock()
		acked[w] = first
		mu.Unlock()
		wg.Go(func() {
			st := histories.After(w, first)
			for n := first; ; n++ {
				if errs[w] = histories.Do(ctx, c, w, n, st); errs[w] != nil {
					errs[w] = fmt.Errorf("writer %d step %d: %w", w, n, errs[w])
					fmt.Println("error", errs[w])
					os.Exit(1)
				}
				mu.Lock() // only complete lines
				acked[w]++
				fmt.Printf("ack %d %d\n", w, n)
				mu.Unlock()
			}
		})
	}
	if to := os.Getenv(childEnv + "_BACKUP"); to != "" {
		go makeBackups(ctx, eng, to, func(name string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Println("backup", name, strings.Trim(fmt.Sprint(acked), "[]"))
		})
	} else if splits {
		go changePartitions(ctx, eng, c)
	} else {
		go changePolicies(ctx, eng, c)
		go makeAndDrop(ctx, eng)
	}
	wg.Wait()
	return errors.Join(errs...)
}

// changePolicies rebuilds the index repeatedly, so that some kills interrupt a rebuild.
func changePolicies(ctx context.Context, eng *core.Engine, c *core.Container) {
	for i := rand.IntN(len(policies)); ; i++ {
		spec := c.Spec().Clone()
		spec.IndexingPolicy = []byte(policies[i%len(policies)])
		_, err := eng.ReplaceContainer(ctx, database, coll, spec)
		if err == nil && i%2 == 0 { // otherwise the next change interrupts this rebuild
			err = c.WaitIndex(ctx)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	}
}

var policies = []string{"", `{"indexingMode":"none"}`, `{"includedPaths":[{"path":"/n/?"},{"path":"/nested/*"}],` +
	`"excludedPaths":[{"path":"/*"}]}`,
	`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/tags/*"}]}`}

// A process that writes through the core is killed repeatedly. After each kill, every acknowledged operation is there,
// each writer's operation in flight is there completely or not at all, and the checker finds no problem.
func TestKilledServerKeepsWhatItAcknowledged(t *testing.T) { killAndVerify(t, kills(t), false) }

// A relaxed store may lose the last operations of each writer, but nothing else.
func TestKilledRelaxedServerLosesTheLastMoments(t *testing.T) { killAndVerify(t, kills(t)/2, true) }

// kills returns how often a server is killed.
func kills(t *testing.T) int {
	s := os.Getenv("ORRERY_KILLS")
	if s == "" {
		return fewKills
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal("ORRERY_KILLS", err)
	}
	return n
}

func killAndVerify(t *testing.T, kills int, relaxed bool) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	at := make([]int, writers) // each writer's next step
	total, rebuilds := 0, 0
	for kill := range kills {
		var env []string
		if relaxed {
			env = append(env, childEnv+"_RELAXED=1")
		}
		acked := runChild(t, dir, at, env, time.Duration(20+r.IntN(150))*time.Millisecond, nil)
		for w := range at {
			total += acked[w] - at[w]
		}
		from := acked
		if relaxed {
			from = at
		}
		var rebuilding bool
		if at, rebuilding = verify(t, dir, from, acked); rebuilding {
			rebuilds++
		}
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	allDropped(t, dir)
	if total < kills*writers {
		t.Fatalf("only %d operations were acknowledged in %d runs: the test tests nothing", total, kills)
	}
	t.Logf("%d operations acknowledged, %d kills met an index rebuild", total, rebuilds)
}

// runChild runs a child for d after its first acknowledgement, kills it, and returns the number of acknowledged steps
// of each writer. It passes the child's other output to said.
func runChild(t *testing.T, dir string, at []int, env []string, d time.Duration, said func(words []string)) []int {
	t.Helper()
	var next []string
	for _, n := range at {
		next = append(next, strconv.Itoa(n))
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, childEnv+"_AT="+strings.Join(next, ","))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acked := slices.Clone(at)
	lines := bufio.NewScanner(out)
	var once sync.Once
	for lines.Scan() {
		once.Do(func() { time.AfterFunc(d, func() { _ = cmd.Process.Kill() }) })
		if words := strings.Fields(lines.Text()); said != nil && words[0] == "backup" {
			said(words[1:])
			continue
		}
		var w, n int
		if _, err := fmt.Sscanf(lines.Text(), "ack %d %d", &w, &n); err != nil {
			_ = cmd.Process.Kill()
			t.Fatalf("child says %q", lines.Text())
		}
		if n != acked[w] {
			t.Fatalf("writer %d acknowledged step %d after %d", w, n, acked[w])
		}
		acked[w]++
	}
	_ = cmd.Wait()
	if cmd.ProcessState.Success() {
		t.Fatal("the child ended by itself")
	}
	return acked
}

// verify compares the store with the writers' histories. It returns the next step of each writer, and whether the kill
// interrupted an index rebuild. The steps up to from must be there. The steps up to acked, and one more, may be there.
func verify(t *testing.T, dir string, from, acked []int) (next []int, rebuilding bool) {
	t.Helper()
	ctx := context.Background()
	eng, c, err := openStore(ctx, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}()
	rebuilding = c.IndexProgress() < 100
	for range 2 { // once during the rebuild that the kill may have interrupted, and once after it
		problems, err := eng.Check(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, p := range problems {
			t.Error("check:", p)
		}
		if err := c.WaitIndex(ctx); err != nil {
			t.Error(err)
		}
	}
	found, err := histories.Found(ctx, c, len(acked))
	if err != nil {
		t.Fatal(err)
	}
	next = make([]int, len(acked))
	for w, got := range found {
		for id, n := range got { // a point read returns the same as a query
			it, err := c.Read(ctx, histories.PK(w), value.StringOf(id))
			if err != nil || doc.Get(it.Doc, "n").Int() != int64(n) {
				t.Errorf("item %s of step %d is read as %s, %v", id, n, it.Doc, err)
			}
		}
		if next[w], err = histories.Steps(w, got, from[w], acked[w]+1); err != nil {
			t.Error(err)
		}
	}
	return next, rebuilding
}
