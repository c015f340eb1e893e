package server

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// killedEnv has the data directory of a server that replaces its store until it is killed.
const killedEnv = "ORRERY_TEST_REPLACING"

// A server that is killed at any moment of a reset, of a restore or of a snapshot starts with the store, and has the
// snapshot, from before it or from after it: never a mixture, and the one from after it if the request was answered.
func TestKilledWhileReplacing(t *testing.T) {
	if dir := os.Getenv(killedEnv); dir != "" {
		replaceUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 12 {
		before, after := killedChild(t, dir, 4+random.IntN(30), time.Duration(random.IntN(4000))*time.Microsecond)
		s := testServer(t, dir)
		got := map[string]string{"store": databases(t, s)}
		if before["snapshot"] != "" || after["snapshot"] != "" {
			if err := s.Restore("", "kept"); err != nil && before["snapshot"] != "" {
				t.Errorf("round %d: the snapshot: %v", round, err)
			} else if err == nil {
				got["snapshot"] = databases(t, s)
			}
		}
		for what, is := range got {
			if is != before[what] && is != after[what] {
				t.Errorf("round %d: the %s has %q, and had %q before and %q after the last change", round, what, is,
					before[what], after[what])
			}
		}
		if left := names(filepath.Join(dir, accountsName)); len(left) > 0 {
			t.Errorf("round %d: accounts are left: %v", round, left)
		}
		stopNow(t, s)
		if left := names(filepath.Join(dir, storesName)); len(left) > 1 {
			t.Errorf("round %d: more than one store is left after a stop: %v", round, left)
		}
	}
}

// killedChild runs a server until it has written so many lines, and a little longer. It returns the databases of the
// store and of the snapshot as the last answered requests left them, and as the one that was cut would have.
func killedChild(t *testing.T, dir string, lines int, longer time.Duration) (before, after map[string]string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKilledWhileReplacing$")
	child.Env = append(os.Environ(), killedEnv+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	before, after = map[string]string{}, map[string]string{}
	in := bufio.NewScanner(out)
	for n := 0; in.Scan(); n++ {
		parts := strings.Split(in.Text(), "|")
		if len(parts) != 3 {
			t.Fatalf("the server says %q", in.Text())
		}
		after[parts[1]] = parts[2]
		if parts[0] == "did" {
			before[parts[1]] = parts[2]
		}
		if n == lines {
			time.Sleep(longer)
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait()
	return before, after
}

// replaceUntilKilled changes a server's store, and says what it does and did, with the databases of the result.
func replaceUntilKilled(t *testing.T, dir string) {
	s := testServer(t, dir)
	say := func(verb, what string, dbs []string) {
		fmt.Printf("%s|%s|%s\n", verb, what, strings.Join(dbs, ","))
	}
	now := slices.DeleteFunc(strings.Split(databases(t, s), ","), func(n string) bool { return n == "" })
	say("did", "store", now)
	do := func(what string, then []string, f func() error) {
		say("does", what, then)
		if err := f(); err != nil {
			fmt.Printf("%v\n", err)
			return
		}
		say("did", what, then)
	}
	for i := 0; !t.Failed(); i++ {
		do("store", nil, func() error { return s.Reset("") })
		now = nil
		for n := range 1 + i%3 {
			id := fmt.Sprintf("n%d-%d", i, n)
			now = append(now, id)
			do("store", now, func() error { newDatabase(t, s, id); return nil })
		}
		kept := now
		do("snapshot", kept, func() error { return s.Snapshot("", "kept") })
		more := append(slices.Clone(now), "more")
		do("store", more, func() error { newDatabase(t, s, "more"); return nil })
		if _, err := s.Fork("kept", "", fmt.Sprintf("fork-%d", i)); err != nil {
			fmt.Printf("%v\n", err)
			return
		}
		do("store", kept, func() error { return s.Restore("", "kept") })
	}
}

// What a server that was killed has left in the directory of its stores is removed at the next start, whatever it is.
// A snapshot that was being replaced is there, and a file that names no store ends the start.
func TestRemainsOfReplacedStores(t *testing.T) {
	dir := t.TempDir()
	s := testServer(t, dir)
	newDatabase(t, s, "first")
	if err := s.Snapshot("", "base"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(""); err != nil {
		t.Fatal(err)
	}
	newDatabase(t, s, "second")
	stopNow(t, s)
	for from, to := range map[string]string{"snapshots/base": "snapshots/base.old"} {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range []string{"store", "stores/77", "stores/78/x", "accounts/a/store", "snapshots/base.new"} {
		if err := os.MkdirAll(filepath.Join(dir, left), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s = testServer(t, dir)
	if got := databases(t, s); got != "second" {
		t.Errorf("there is %q", got)
	}
	if err := s.Restore("", "base"); err != nil {
		t.Error(err)
	}
	if got := databases(t, s); got != "first" {
		t.Errorf("after a restore there is %q", got)
	}
	stopNow(t, s)
	if got := fmt.Sprint(names(filepath.Join(dir, snapshotsName))); got != "[base]" {
		t.Errorf("snapshots: %s", got)
	}
	if got := names(filepath.Join(dir, storesName)); len(got) != 1 {
		t.Errorf("stores: %v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, storeNameFile), []byte("../elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, controls := range []bool{false, true} {
		c := Ephemeral()
		c.Data, c.Memory, c.TestControls, c.Logger = dir, false, controls, quiet
		if s, err := Start(c); err == nil {
			stopNow(t, s)
			t.Errorf("test controls %v: a file that names no store was accepted", controls)
		}
	}
}

// When a replacement fails, the account goes on with its store, also for the requests that waited meanwhile.
func TestReplacementThatFails(t *testing.T) {
	dir := t.TempDir()
	s := testServer(t, dir)
	newDatabase(t, s, "kept")
	name := filepath.Join(dir, storeNameFile)
	if err := os.MkdirAll(filepath.Join(name, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, leave := s.stage.enter(t.Context())
	time.AfterFunc(2*drainTime, leave)
	if code, text := control(t, s, "POST", "/reset", ""); code != 500 {
		t.Errorf("a reset that can't be completed: %d %s", code, text)
	}
	newDatabase(t, s, "more")
	if got := databases(t, s); got != "kept,more" {
		t.Errorf("there is %q", got)
	}
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(""); err != nil {
		t.Error(err)
	}
	if got := databases(t, s); got != "" {
		t.Errorf("after a reset there is %q", got)
	}
}

// A reset ends a backup that is being made, and doesn't wait for it.
func TestResetDuringABackup(t *testing.T) {
	s := testServer(t, t.TempDir())
	newDatabase(t, s, "one")
	began := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		var once bool
		_, err := s.backup(t.Context(), t.TempDir(), func(_, _ int64) {
			if !once {
				once = true
				close(began)
				time.Sleep(300 * time.Millisecond)
			}
		})
		ended <- err
	}()
	<-began
	if err := s.Reset(""); err != nil {
		t.Error(err)
	}
	if got := databases(t, s); got != "" {
		t.Errorf("there is %q", got)
	}
	select {
	case err := <-ended:
		t.Errorf("the backup has ended before the reset: %v", err)
	default:
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("the backup: %v", err)
	}
}
