//go:build unix

package chaos

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv/tikvkv"
	"github.com/orrerydb/orrery/core/value"
)

// The variables that doc.go describes.
const (
	clusterEnv = "ORRERY_TEST_CLUSTER"
	runsEnv    = "ORRERY_CHAOS_RUNS"
	secondsEnv = "ORRERY_CHAOS_SECONDS"
	storesEnv  = "ORRERY_CHAOS_STORES"
	faultsEnv  = "ORRERY_CHAOS_FAULTS"
	waitEnv    = "ORRERY_CHAOS_WAIT"
)

const (
	stores    = 3
	processes = 3
	period    = 5 * time.Second // from one fault to the next
)

// fault is something that happens to a part of the system, and for how long.
type fault struct {
	kind  string
	lasts time.Duration
	from  time.Time
	to    time.Time
	of    int // the process or the store
}

var kinds = []fault{{kind: "process killed", lasts: 500 * time.Millisecond},
	{kind: "store killed", lasts: 4 * time.Second}, {kind: storeLost, lasts: 4 * time.Second},
	{kind: "process paused", lasts: 3 * time.Second}, {kind: "store paused", lasts: 4 * time.Second},
	{kind: "Placement Driver restarted", lasts: time.Second}}

// storeLost is the fault of a store that is killed and doesn't come back. It happens once in a run, because two of
// three stores are needed.
const storeLost = "store lost"

// cluster is a cluster that the program of ORRERY_TEST_CLUSTER controls.
type cluster struct {
	t            *testing.T
	program, dir string
	members      string
	stores       int
}

// newReplicated starts a cluster whose stores have the tests' keys three times, or skips the test without a program.
// Where a store ends by itself before they have, nothing was tested, and another cluster takes its place.
func newReplicated(t *testing.T, stores int) *cluster {
	for range 5 {
		c := newClusterOf(t, stores)
		if c.replicated() {
			return c
		}
		c.must("stop")
	}
	t.Fatal("in none of five clusters all stores stayed until the regions were replicated")
	return nil
}

// newClusterOf starts a cluster with a number of stores, or skips the test without a program.
func newClusterOf(t *testing.T, stores int) *cluster {
	c := &cluster{t: t, program: os.Getenv(clusterEnv), dir: filepath.Join(t.TempDir(), "cluster"), stores: stores}
	if c.program == "" {
		t.Skip("there is no program that controls a cluster: " + clusterEnv)
	}
	t.Cleanup(func() {
		c.must("stop")
		for _, why := range c.panics() {
			t.Log(why)
		}
	})
	lines := strings.Fields(c.must("start", strconv.Itoa(stores)))
	if len(lines) == 0 {
		t.Fatal("the program has printed no address")
	}
	c.members = lines[len(lines)-1]
	return c
}

// panics returns why stores have ended by themselves, if the program keeps what they have printed.
func (c *cluster) panics() (all []string) {
	files, _ := filepath.Glob(filepath.Join(c.dir, "*.out"))
	for _, name := range files {
		out, err := os.ReadFile(name)
		if err != nil {
			c.t.Error(err)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
				all = append(all, fmt.Sprintf("%s has ended: %s", filepath.Base(name), strings.TrimSpace(line)))
			}
		}
	}
	return all
}

// replicated waits until the regions of the tests' keys are on each store, or on three of more. A cluster begins with
// all on one store, and a store that is killed then takes the data with it. The driver's rule for a keyspace of its
// own, which nobody uses here, asks for cuts that unistore can't make. It would be all that the driver tries with these
// regions. It returns false if a store ends by itself.
func (c *cluster) replicated() bool {
	member, _, _ := strings.Cut(c.members, ",")
	req, err := http.NewRequest(http.MethodDelete,
		"http://"+member+"/pd/api/v1/config/region-label/rule/keyspaces%2F0", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.Body.Close() != nil {
		c.t.Fatal("the rule of a keyspace can't be removed", err)
	}
	var all struct {
		Regions []struct {
			Start   string `json:"start_key"`
			End     string `json:"end_key"`
			Peers   []any  `json:"peers"`
			Pending []any  `json:"pending_peers"`
		} `json:"regions"`
	}
	for begun := time.Now(); time.Since(begun) < 3*time.Minute; time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get("http://" + member + "/pd/api/v1/regions")
		if err != nil {
			continue
		}
		all.Regions = nil
		err = errors.Join(json.NewDecoder(resp.Body).Decode(&all), resp.Body.Close())
		missing := err != nil || len(all.Regions) == 0
		for _, r := range all.Regions {
			if r.Start >= "6F73" || r.End != "" && r.End <= "6F72" { // none of our keys, which begin with "or"
				continue
			}
			missing = missing || len(r.Peers) < min(c.stores, 3) || len(r.Pending) > 0
		}
		if !missing {
			c.t.Logf("replicated after %v", time.Since(begun).Round(time.Millisecond))
			return true
		}
		if len(c.panics()) > 0 {
			return false
		}
	}
	c.t.Fatalf("the regions aren't on %d stores: %+v", c.stores, all)
	return false
}

func (c *cluster) must(verb string, args ...string) string {
	out, err := c.run(verb, args...)
	if err != nil {
		c.t.Fatalf("%s %s: %v %s", verb, args, err, out)
	}
	return out
}

func (c *cluster) run(verb string, args ...string) (string, error) {
	if verb == "restart" {
		// unistore doesn't start where its folder of the snapshots under way is left. Nothing in it is needed.
		if err := os.RemoveAll(filepath.Join(c.dir, "s"+args[0], "snap")); err != nil {
			return "", err
		}
	}
	out, err := exec.Command(c.program, append([]string{verb, c.dir}, args...)...).CombinedOutput()
	return string(out), err
}

// number returns the number that an environment variable has.
func number(t *testing.T, env string, otherwise int) int {
	s := os.Getenv(env)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(env, err)
	}
	return n
}

// fastElections returns the longest wait after the fault of a store, or of the Placement Driver. It is 0 if the
// environment promises none.
func fastElections(t *testing.T) time.Duration {
	s := os.Getenv(waitEnv)
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		t.Fatalf("%s: %q is no duration", waitEnv, s)
	}
	return d
}

// otherwise are the faults that happen if the environment names none.
const otherwise = "process killed,process paused,Placement Driver restarted"

// chosen returns the kinds of faults that the environment names.
func chosen(t *testing.T) (out []fault) {
	names := cmp.Or(os.Getenv(faultsEnv), otherwise)
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(kinds, func(f fault) bool { return f.kind == name })
		if i < 0 {
			t.Fatalf("%s: there is no fault %q", faultsEnv, name)
		}
		out = append(out, kinds[i])
	}
	return out
}

// TestChaos runs readers, writers, transactions, queries, readers of the feed, and splits and joins of slots in three
// processes over three stores. Clocks differ by a day. Every five seconds something fails. What clients were
// told is one history (see judge), the feeds show every version, and a check finds nothing. Nobody waits longer than
// what doc.go promises: users of a process, without the time in which it was paused.
func TestChaos(t *testing.T) {
	for n := range number(t, runsEnv, 1) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			// It has a cluster of its own, because a run may end with fewer stores than it began with.
			start := newClusterOf
			if slices.ContainsFunc(chosen(t), func(f fault) bool { return strings.HasPrefix(f.kind, "store") }) {
				start = newReplicated
			}
			c := start(t, number(t, storesEnv, stores))
			r := &run{t: t, cluster: c, random: rand.New(rand.NewPCG(uint64(n), 7)), others: fastElections(t),
				address: fmt.Sprintf("tikv://%s/chaos-%d?commit=2pc", c.members, n)}
			r.make()
			for i := range processes {
				r.start(i)
			}
			r.faults(time.Duration(number(t, secondsEnv, 20)) * time.Second)
			for _, p := range r.alive {
				p.end()
			}
			r.judge()
			r.finish()
			r.report()
		})
	}
}

// run is one history.
type run struct {
	t       *testing.T
	cluster *cluster
	random  *rand.Rand
	address string
	alive   [processes]*process
	all     []*process
	others  time.Duration // the longest wait after the faults of what isn't a process; 0: nothing is promised
	kinds   []fault       // of which the next faults are
	lost    bool          // a store is
	done    []fault
}

// open opens the store in this process.
func (r *run) open() *core.Engine {
	r.t.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		of, err := tikvkv.Open(bg, r.address, tikvkv.Options{})
		if err == nil {
			e, cerr := core.Open(bg, of, core.Options{Logger: slog.New(slog.DiscardHandler)})
			if cerr == nil {
				return e
			}
			err = errors.Join(cerr, of.Close())
		}
		if time.Since(begun) > time.Minute {
			r.t.Fatal(err)
		}
	}
}

// make creates the container with its registers and accounts.
func (r *run) make() {
	e := r.open()
	defer e.Close()
	if _, err := e.EnsureDatabase(bg, "db"); err != nil {
		r.t.Fatal(err)
	}
	c, err := e.CreateContainer(bg, "db", core.ContainerSpec{ID: "c", UniqueKeys: [][]string{{"/u"}},
		LogMinutes: 7 * 24 * 60, Throughput: core.Throughput{Manual: 20000},
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range registers {
		r.create(c, register(registerName(i), 0))
	}
	for i := range accounts {
		r.create(c, account(i, money))
	}
}

func (r *run) create(c *core.Container, d doc.Doc) {
	if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d}); err != nil {
		r.t.Fatal(err)
	}
}

// start starts a process.
func (r *run) start(i int) {
	r.alive[i] = startProcess(r.t, r.address, i+processes*len(r.all)) // numbers that differ, and tell the clock
	r.all = append(r.all, r.alive[i])
}

// faults lets the processes run, with a fault in the middle of each period.
func (r *run) faults(d time.Duration) {
	for end := time.Now().Add(d); time.Until(end) >= period; {
		next := time.Now().Add(period)
		time.Sleep(period / 10)
		if len(r.kinds) == 0 {
			r.kinds = chosen(r.t)
			r.random.Shuffle(len(r.kinds), func(i, j int) { r.kinds[i], r.kinds[j] = r.kinds[j], r.kinds[i] })
		}
		f := r.kinds[0]
		if r.kinds = r.kinds[1:]; f.kind == storeLost && r.lost {
			continue
		}
		r.lost = r.lost || f.kind == storeLost
		f.of, f.from = r.random.IntN(processes), time.Now()
		begin, end := r.effect(f)
		begin()
		time.Sleep(f.lasts)
		end()
		f.to = time.Now()
		r.done = append(r.done, f)
		time.Sleep(time.Until(next))
	}
}

// effect returns what begins and what ends a fault.
func (r *run) effect(f fault) (begin, end func()) {
	p, store := r.alive[f.of], strconv.Itoa(1+f.of%r.cluster.stores)
	switch f.kind {
	case "process killed":
		return p.kill, func() { r.start(f.of) }
	case "process paused":
		return p.pause, p.resume
	case "store paused":
		return func() { _, _ = r.cluster.run("pause", store) }, // it may have ended by itself
			func() { _, _ = r.cluster.run("resume", store) }
	case "store killed":
		return func() { _, _ = r.cluster.run("kill", store) }, // it may have ended by itself
			func() { r.cluster.must("restart", store) }
	case storeLost:
		return func() { r.cluster.must("kill", store) }, func() {}
	}
	return func() { r.cluster.must("kill", "pd") }, func() { r.cluster.must("restart", "pd") }
}

// finish compares what is stored with the record.
func (r *run) finish() {
	e := r.open()
	defer e.Close()
	c, err := e.Container("db", "c")
	if err != nil {
		r.t.Fatal(err)
	}
	newest := map[string]int64{}
	for i := range registers {
		k := registerName(i)
		it, err := c.Read(bg, key(partitionOf(k)), value.StringOf(k))
		if err != nil {
			r.t.Fatal(err)
		}
		newest[k] = it.LSN
	}
	for _, p := range r.all {
		for _, e := range p.events {
			if e.LSN > newest[e.Key] {
				r.t.Errorf("%s has LSN %d at the end, after %+v", e.Key, newest[e.Key], e)
			}
		}
	}
	if sum, err := total(bg, c); sum != accounts*money || err != nil {
		r.t.Errorf("the accounts hold %d (%v)", sum, err)
	}
	r.latest(c, newest)
	r.versions(c)
	problems, err := e.Check(bg)
	if err != nil || len(problems) > 0 {
		r.t.Errorf("check: %v\n%s", err, strings.Join(problems, "\n"))
	}
}

// latest reads the feed of latest versions, which must show the newest ones.
func (r *run) latest(c *core.Container, newest map[string]int64) {
	shown := map[string]int64{}
	for pos, over := feed.Start(), false; !over; {
		page, err := c.Feed(bg, feed.Scope{}, pos, 5)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, it := range page.Items {
			if id := it.ID().Str(); id[0] == 'r' {
				shown[id] = it.LSN
			}
		}
		pos, over = page.Next, len(page.Items) == 0 && !page.More
	}
	if !maps.Equal(shown, newest) {
		r.t.Errorf("the feed shows %v, want %v", shown, newest)
	}
}

// versions reads the feed of all versions. Each acknowledged write of a register is in it, once, in the order of LSNs.
func (r *run) versions(c *core.Container) {
	logged, last := map[string]map[int64]int64{}, map[string]int64{}
	for pos, over := feed.Start(), false; !over; {
		page, err := c.FeedVersions(bg, feed.Scope{}, pos, 100)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, ch := range page.Changes {
			id := ch.Item().ID().Str()
			if id[0] != 'r' {
				continue
			}
			if ch.LSN <= last[id] {
				r.t.Errorf("the log has %s of LSN %d after LSN %d", id, ch.LSN, last[id])
			}
			if last[id] = ch.LSN; logged[id] == nil {
				logged[id] = map[int64]int64{}
			}
			logged[id][doc.Get(ch.Item().Doc, "v").Int()] = ch.LSN
		}
		pos, over = page.Next, len(page.Changes) == 0 && !page.More
	}
	for _, p := range r.all {
		for _, e := range p.events {
			if e.Op == "set" && e.Err == "" && e.End != 0 && logged[e.Key][e.Value] != e.LSN {
				r.t.Errorf("the log has LSN %d of %+v", logged[e.Key][e.Value], e)
			}
		}
	}
}

// process is a process of the operating system.
type process struct {
	*exec.Cmd
	t      *testing.T
	input  interface{ Close() error }
	output bytes.Buffer // lines of events
	errors bytes.Buffer
	ended  time.Time // when it was killed, or told to end; zero: it has ended by itself
	pauses []fault
	events []event // read from the output when it has ended
}
