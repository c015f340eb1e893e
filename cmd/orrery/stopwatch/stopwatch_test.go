package stopwatch

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a newcomer may have to wait for, whatever the machine and its network: processor time of all compilers, and
// bytes of modules.
const (
	mostCPU   = 125 * time.Second
	mostBytes = 220 << 20
	firstWait = 2 * time.Second // from the start of the binary to the first answer
)

// TestStopwatch clones this repository with a home and caches that are empty, builds it by make, starts it, and waits
// for the first answer.
func TestStopwatch(t *testing.T) {
	if os.Getenv("ORRERY_STOPWATCH") == "" {
		t.Skip("downloads all modules: make stopwatch")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	modules := filepath.Join(home, "go", "pkg", "mod")
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", modules).Run() }) // Go's module cache is read-only
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GOCACHE=" + filepath.Join(home, "cache"),
		"GOMODCACHE=" + modules, "GOFLAGS="}
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "HTTPS_PROXY", "HTTP_PROXY",
		"NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	began := time.Now()
	run := func(dir string, args ...string) *os.ProcessState {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, env
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, text)
		}
		return cmd.ProcessState
	}
	clone := filepath.Join(home, "orrery")
	run(home, "git", "clone", "-q", "--no-hardlinks", root, clone)
	cloned := time.Since(began)
	run(clone, "go", "mod", "download") // apart, so that the compilers' time is theirs alone
	downloaded := time.Since(began)
	built := run(clone, "make", "build")
	cpu := built.UserTime() + built.SystemTime()
	compiled := time.Since(began)

	connect := filepath.Join(home, "connect.json")
	args := []string{"serve", "--memory", "--connect-file", connect}
	for _, api := range []string{"nosql", "gremlin", "table", "mongo", "admin"} {
		args = append(args, "--"+api+"-addr", "127.0.0.1:0")
	}
	server := exec.Command(filepath.Join(clone, "bin", "orrery"), args...)
	server.Env = env
	started := time.Now()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}()
	for !answers(connect) {
		if time.Since(started) > 30*time.Second {
			t.Fatal("no answer")
		}
		time.Sleep(5 * time.Millisecond)
	}
	first := time.Since(started)
	size := sizeOf(t, filepath.Join(modules, "cache", "download"))
	t.Logf("clone %v, modules %v (%d MB), compilers %v of the processors in %v, first answer %v after the start; "+
		"together %v", cloned, downloaded-cloned, size>>20, cpu.Round(time.Second), compiled-downloaded, first,
		time.Since(began))
	if cpu > mostCPU {
		t.Errorf("compiling took %v of the processors, want at most %v", cpu, mostCPU)
	}
	if size > mostBytes {
		t.Errorf("the modules have %d MB, want at most %d", size>>20, mostBytes>>20)
	}
	if first > firstWait {
		t.Errorf("the first answer came after %v, want at most %v", first, firstWait)
	}
}

// answers reports whether the server of a file with connection strings is ready.
func answers(file string) bool {
	raw, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	var c struct{ Admin struct{ Endpoint string } }
	if json.Unmarshal(raw, &c) != nil {
		return false
	}
	res, err := http.Get(c.Admin.Endpoint + "ready")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// sizeOf returns the bytes of the files below a directory.
func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
