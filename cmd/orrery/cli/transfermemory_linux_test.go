package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// resident runs the program and returns the most memory that it has had, in MiB, and the length of its output.
func resident(t *testing.T, in func(io.Writer) error, args ...string) (mib, output int64) {
	t.Helper()
	cmd := exec.Command(binary(), args...)
	var errOut strings.Builder
	cmd.Env, cmd.Stderr = append(cmd.Environ(), "GOGC=100"), &errOut
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fed := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(stdin, 1<<20)
		err := in(w)
		if e := w.Flush(); err == nil {
			err = e
		}
		_ = stdin.Close()
		fed <- err
	}()
	ended := make(chan struct{})
	highest := make(chan int64)
	go func() {
		most := int64(0)
		for {
			select {
			case <-ended:
				highest <- most
				return
			case <-time.After(2 * time.Millisecond):
				most = max(most, highWater(cmd.Process.Pid))
			}
		}
	}()
	output, err = io.Copy(io.Discard, stdout)
	err = errors.Join(err, <-fed, cmd.Wait())
	close(ended)
	if mib = <-highest; err != nil || mib == 0 {
		t.Fatalf("%q: %v, %d MiB: %s", args, err, mib, errOut.String())
	}
	return mib, output
}

// highWater returns the most memory that a process has had, in MiB; 0 after its end. What the system reports at the end
// of a process counts the memory of the one that has started it, too.
func highWater(pid int) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, text, _ := strings.Cut(string(raw), "VmHWM:")
	kib, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, _ := strconv.ParseInt(kib, 10, 64)
	return n >> 10
}

// Import and export need memory for some batches, however long the stream is: with a hundred times the rows at most so
// much more as a part of the longer stream.
func TestTransferMemory(t *testing.T) {
	const few, many, most = 1000, 100_000, 64 // rows of 1 KB; MiB
	for _, api := range []string{"nosql", "mongo"} {
		s := serverFor(t, func(c *server.Config) { c.Memory, c.Data = false, filepath.Join(t.TempDir(), "data") })
		var imported, exported [2]int64
		for i, rows := range []int{few, many} {
			container := fmt.Sprint("c", i)
			imported[i], _ = resident(t, func(w io.Writer) (err error) {
				for n := 0; n < rows && err == nil; n++ {
					_, err = fmt.Fprintf(w, `{"id":"i%d","_id":"i%d","pk":"%d","text":"%0950d"}`+"\n", n, n, n, n)
				}
				return err
			}, append([]string{"import", "-", "--format", "jsonl", "--db", "d", "--api", api, "--container", container,
				"--partition-key", "/pk", "--state", filepath.Join(t.TempDir(), "state"),
				"--bad-rows", filepath.Join(t.TempDir(), "bad")}, endpoints(s)...)...)
			var size int64
			exported[i], size = resident(t, func(io.Writer) error { return nil },
				append([]string{"export", "-", "--db", "d", "--api", api, "--container", container},
					endpoints(s)...)...)
			if size < int64(rows)*950 {
				t.Errorf("%s: the export of %d rows has %d bytes", api, rows, size)
			}
		}
		t.Logf("%s: import %d MiB, export %d MiB", api, imported, exported)
		if imported[1] > imported[0]+most || exported[1] > exported[0]+most {
			t.Errorf("%s: import %v MiB, export %v MiB, with %d and %d rows", api, imported, exported, few, many)
		}
	}
}
