package script_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// gone reports whether no process has one of the ids. A process that was waited for has none.
func gone(pids []int) bool {
	for _, pid := range pids {
		p, err := os.FindProcess(pid)
		if err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			return false
		}
	}
	return true
}

func TestNoProcessIsLeft(t *testing.T) {
	pool := newPool(t, script.Options{Workers: 4, Time: time.Minute})
	var started, ended sync.WaitGroup
	host := &waitingHost{started: &started, until: make(chan struct{})}
	for i := range 4 {
		source := `function f() { __.readDocuments(__.getSelfLink(), function () { for (;;) {} }); }`
		if i%2 == 0 {
			source = `function f() { __.readDocuments(__.getSelfLink()); }`
		}
		started.Add(1)
		ended.Add(1)
		go func() {
			defer ended.Done()
			_, _ = pool.Run(t.Context(), script.Run{Source: source, Links: links}, host)
		}()
	}
	started.Wait()
	pids := script.Pids(pool)
	if len(pids) != 4 {
		t.Fatalf("%d workers, want 4", len(pids))
	}
	close(host.until)
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	ended.Wait()
	if !gone(pids) || len(script.Pids(pool)) != 0 {
		t.Errorf("workers exist after Close: %v of %v", script.Pids(pool), pids)
	}
	var e *script.Error
	if _, err := pool.Run(t.Context(), script.Run{Source: "function f() {}"}, host); !errors.As(err, &e) {
		t.Errorf("a run after Close: %v", err)
	}
}

func TestIdleWorkersEnd(t *testing.T) {
	pool := newPool(t, script.Options{})
	run := func() {
		t.Helper()
		if _, err := pool.Run(t.Context(), script.Run{Source: "function f() {}", Links: links}, &items{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(script.Pids(pool)) != 0 {
		t.Error("a worker was started before the first run")
	}
	run()
	first := script.Pids(pool)
	run()
	if got := script.Pids(pool); len(got) != 1 || got[0] != first[0] || script.Idle(pool) != 1 {
		t.Errorf("workers %v after a second run, want %v", got, first)
	}
	script.Expire(pool)
	if !gone(first) || script.Idle(pool) != 0 {
		t.Error("an idle worker lives on")
	}
	run()
}

// A binary that doesn't know the command of workers is not started as one: it would do its own work again.
func TestBinaryWithoutWorkers(t *testing.T) {
	defer script.Unserved()()
	pool := newPool(t, script.Options{})
	_, err := pool.Run(t.Context(), script.Run{Source: "function f() {}", Links: links}, &items{})
	var e *script.Error
	if !errors.As(err, &e) || e.Status != 503 || !strings.Contains(e.Body, script.WorkerCommand) {
		t.Errorf("error %v", err)
	}
	if pids := script.Pids(pool); len(pids) > 0 {
		t.Errorf("processes %v", pids)
	}
}

// A worker that something else has ended while it was idle costs no run.
func TestDeadIdleWorkerIsReplaced(t *testing.T) {
	pool := newPool(t, script.Options{Workers: 1})
	for range 3 {
		if _, err := pool.Run(t.Context(), script.Run{Source: "function f() {}", Links: links}, &items{}); err != nil {
			t.Fatal(err)
		}
		for _, pid := range script.Pids(pool) {
			p, err := os.FindProcess(pid)
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			for script.AnyAlive(pool) {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// Workers see neither the environment nor the open files of the server.
func TestWorkersHaveNothing(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Log("this system has no /proc; workers are started in the same way")
		return
	}
	t.Setenv("ORRERY_KEY", "secret")
	file, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pool := newPool(t, script.Options{})
	if _, err := pool.Run(t.Context(), script.Run{Source: "function f() {}", Links: links}, &items{}); err != nil {
		t.Fatal(err)
	}
	process := "/proc/" + strconv.Itoa(script.Pids(pool)[0])
	if environment, err := os.ReadFile(process + "/environ"); err != nil || len(environment) != 0 {
		t.Errorf("the environment is %q, %v", environment, err)
	}
	files, err := os.ReadDir(process + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		target, err := os.Readlink(process + "/fd/" + f.Name())
		if err != nil || strings.HasPrefix(target, "pipe:") || strings.HasPrefix(target, "anon_inode:") {
			continue // its pipes, and the poller of the runtime
		}
		if strings.HasPrefix(target, "/sys/") {
			continue // the runtime looks at its control group
		}
		t.Errorf("file %s is %s", f.Name(), target)
	}
}

// waitingHost answers when until is closed.
type waitingHost struct {
	started *sync.WaitGroup
	until   chan struct{}
}

// Do implements script.Host.
func (h *waitingHost) Do(context.Context, script.Op) (script.Reply, *script.Error) {
	h.started.Done()
	<-h.until
	return script.Reply{}, nil
}

// parentCommand has the test binary serve as a server whose program never ends. It prints its worker's process.
const parentCommand = "script-parent"

func parent() {
	pool := script.NewPool(script.Options{Time: time.Hour})
	host := hostFunc(func(context.Context, script.Op) (script.Reply, *script.Error) {
		fmt.Println(script.Pids(pool)[0])
		return script.Reply{}, nil
	})
	_, _ = pool.Run(context.Background(), script.Run{Links: links,
		Source: `function f() { __.readDocuments(__.getSelfLink(), function () { for (;;) {} }); }`}, host)
}

// A worker ends with its server, even if it is computing and the server is killed.
func TestWorkersEndWithTheServer(t *testing.T) {
	cmd := exec.Command(os.Args[0], parentCommand)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	worker, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || gone([]int{worker}) {
		t.Fatalf("worker %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); !ended(worker); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the worker lives 10 s after its server")
		}
	}
}

// ended reports whether a process that isn't ours has ended. It may still wait for its new parent.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		_, after, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(after, "Z")
	}
	return gone([]int{pid})
}
