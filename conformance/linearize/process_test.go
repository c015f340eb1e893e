package linearize

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

var binary string // path of the program

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "orrery")
	if err != nil {
		panic(err)
	}
	if binary = os.Getenv("ORRERY_BINARY"); binary == "" {
		binary = filepath.Join(dir, "orrery")
		// Without the profile it is linked from what the tests are compiled of.
		build := exec.Command("go", "build", "-pgo=off", "-ldflags", "-s -w", "-o", binary, "./cmd/orrery")
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Printf("build: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is a running server.
type process struct {
	cmd *exec.Cmd
	at  server.Connections
}

// launch starts the program with a store and returns when it is ready. mongo is the address of the MongoDB API.
func launch(t *testing.T, dir, durability, mongo string) *process {
	t.Helper()
	args := []string{"serve", "--data", dir, "--durability", durability, "--strict", "none", "--gremlin-addr", "off",
		"--log-level", "warn", "--mongo-addr", mongo}
	for _, a := range []string{"nosql", "table", "admin"} {
		args = append(args, "--"+a+"-addr", "127.0.0.1:0")
	}
	p := &process{cmd: exec.Command(binary, args...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	admin := ""
	for lines := bufio.NewScanner(out); admin == "" && lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 1 && f[0] == "Admin" {
			admin, _, _ = strings.Cut(f[1], "{")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	for deadline := time.Now().Add(20 * time.Second); !p.ready(admin); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server isn't ready")
		}
	}
	res, err := http.Get(admin + "orrery/connect")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&p.at); err != nil {
		t.Fatal(err)
	}
	p.at.Key = server.WellKnownKey // the reply doesn't contain it
	return p
}

func (p *process) ready(admin string) bool {
	res, err := http.Get(admin + "ready")
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// kill ends the process like a crash, and returns when it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// check runs the checker on a store that no server has open.
func check(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command(binary, "check", dir).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "clean") {
		t.Errorf("check: %v: %s", err, out)
	}
}
