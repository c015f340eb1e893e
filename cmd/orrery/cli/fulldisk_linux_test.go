package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk mounts a file system of mib MiB in memory.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// remount changes the file system: its size, or ro.
func remount(t *testing.T, dir string, flags uintptr, data string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, data); err != nil {
		t.Fatal(err)
	}
}

// takeAll fills a disk completely.
func takeAll(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "others")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if _, err := f.Write(chunk); err != nil {
			chunk = chunk[:len(chunk)/2]
		}
	}
	return file
}

// ask sends a request to the NoSQL API and requires a timely reply.
func (p *process) ask(t *testing.T, method, path, body string, head ...string) (int, string) {
	t.Helper()
	if p.nosql == "" {
		p.nosql = p.connections(t).NoSQL.Endpoint
	}
	r, err := http.NewRequest(method, strings.TrimSuffix(p.nosql, "/")+"/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	c := http.Client{Timeout: 10 * time.Second}
	res, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, p.log)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (p *process) create(t *testing.T, id int, size int) (int, string) {
	raw := make([]byte, size/2)
	for i := range raw {
		raw[i] = byte(rand.Uint32())
	}
	return p.ask(t, http.MethodPost, "dbs/d/colls/c/docs", fmt.Sprintf(`{"id":"%d","pk":"a","x":"%x"}`, id, raw),
		"x-ms-documentdb-partitionkey", `["a"]`)
}

func (p *process) delete(t *testing.T, id int) int {
	code, _ := p.ask(t, http.MethodDelete, fmt.Sprintf("dbs/d/colls/c/docs/%d", id), "",
		"x-ms-documentdb-partitionkey", `["a"]`)
	return code
}

func (p *process) countItems(t *testing.T) int {
	t.Helper()
	code, body := p.ask(t, http.MethodPost, "dbs/d/colls/c/docs", `{"query":"SELECT VALUE COUNT(1) FROM c",`+
		`"parameters":[]}`,
		"Content-Type", "application/query+json", "x-ms-documentdb-isquery", "True",
		"x-ms-documentdb-query-enablecrosspartition", "True",
		"x-ms-documentdb-partitionkey", `["a"]`)
	var out struct{ Documents []int }
	if err := json.Unmarshal([]byte(body), &out); err != nil || code != http.StatusOK || len(out.Documents) != 1 {
		t.Fatalf("COUNT: %d %s", code, body)
	}
	return out.Documents[0]
}

// state waits until every API has answered, and returns the reply of /ready.
func (p *process) state(t *testing.T) (int, string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		res, err := http.Get(p.admin + "ready")
		if err != nil {
			if time.Now().After(end) {
				t.Fatalf("%v\n%s", err, p.log)
			}
			continue // the server is opening the store again
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if !bytes.Contains(b, []byte("not every API")) {
			return res.StatusCode, string(b)
		}
		if time.Now().After(end) {
			t.Fatalf("never ready: %s\n%s", b, p.log)
		}
	}
}

func (p *process) wantState(t *testing.T, code int, what string) {
	t.Helper()
	var got int
	var text string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got, text = p.state(t); got == code && strings.Contains(text, what) {
			return
		}
	}
	t.Fatalf("/ready says %d %s, want %d %s\n%s", got, text, code, what, p.log)
}

func (p *process) end(t *testing.T) {
	t.Helper()
	if code, took := p.terminate(t); code != 0 || took > 5*time.Second {
		t.Fatalf("exit %d after %v: %s", code, took, p.log)
	}
}

// fill creates items from number n on until the disk is full except for the reserve, and returns the next number.
func (p *process) fill(t *testing.T, n int) int {
	t.Helper()
	var refused time.Time
	for refused.IsZero() || time.Since(refused) < 2*time.Second { // a merge may cause a refusal for a moment
		code, body := p.create(t, n, 10<<10)
		switch {
		case code == http.StatusCreated:
			n, refused = n+1, time.Time{}
			continue
		case !strings.Contains(body, "disk is full"):
			t.Fatalf("item %d: %d %s", n, code, body)
		case refused.IsZero():
			refused = time.Now()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return n
}

// A disk of 64 MiB is filled with items of 10 KB and by other files. The server is restarted in each state, and then
// the disk gets room again.
func TestServerOnFullDisk(t *testing.T) {
	disk := smallDisk(t, 64)
	serve := func() *process {
		return launch(t, "serve", "--data", filepath.Join(disk, "data"), "--auth=false", "--cache-mb", "16")
	}
	p := serve()
	p.ready(t)
	p.ask(t, http.MethodPost, "dbs", `{"id":"d"}`)
	p.ask(t, http.MethodPost, "dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}}`)
	n := p.fill(t, 0)
	t.Logf("%d items", n)
	if n < 64<<20/2/(10<<10) {
		t.Errorf("%d items only", n)
	}
	p.wantState(t, http.StatusServiceUnavailable, "disk is full: new data is refused")
	if got := p.countItems(t); got != n {
		t.Errorf("COUNT is %d of %d", got, n)
	}
	for i := range 50 {
		if code := p.delete(t, i); code != http.StatusNoContent {
			t.Fatalf("delete %d: %d", i, code)
		}
	}
	p.end(t)
	if lines := strings.Count(p.log.String(), "\n"); lines > 12 {
		t.Errorf("%d lines of log:\n%s", lines, p.log)
	}

	p = serve()
	for code, text := p.state(t); code != http.StatusOK && !strings.Contains(text, "disk is full"); {
		time.Sleep(time.Millisecond)
		code, text = p.state(t)
	}
	n = p.fill(t, n) // merges may have found room for some more in place of those that were deleted
	p.wantState(t, http.StatusServiceUnavailable, "disk is full: new data is refused")
	if got := p.countItems(t); got != n-50 {
		t.Errorf("COUNT is %d of %d", got, n-50)
	}
	others := takeAll(t, disk)
	p.wantState(t, http.StatusServiceUnavailable, "all writes are refused")
	if code := p.delete(t, 60); code == http.StatusNoContent {
		t.Error("a delete without room")
	}
	if got := p.countItems(t); got != n-50 {
		t.Errorf("COUNT is %d of %d", got, n-50)
	}
	p.end(t)

	_ = os.Remove(filepath.Join(disk, "data", "store", "ballast"))
	f, _ := os.OpenFile(others, os.O_APPEND|os.O_WRONLY, 0)
	for b := make([]byte, 64<<10); len(b) > 0; {
		if _, err := f.Write(b); err != nil {
			b = b[:len(b)/2]
		}
	}
	_ = f.Close()
	p = serve() // read-only
	p.wantState(t, http.StatusServiceUnavailable, "all writes are refused until it has more room")
	if got := p.countItems(t); got != n-50 {
		t.Errorf("COUNT is %d of %d", got, n-50)
	}

	if err := os.Remove(others); err != nil {
		t.Fatal(err)
	}
	p.wantState(t, http.StatusOK, "ready") // the deletes have made room
	if code := p.delete(t, 60); code != http.StatusNoContent {
		t.Errorf("a delete with room again: %d", code)
	}
	if got := p.countItems(t); got != n-51 {
		t.Errorf("COUNT is %d of %d", got, n-51)
	}
	remount(t, disk, 0, "size=256m")
	p.wantState(t, http.StatusOK, "ready")
	if code, body := p.create(t, n, 10<<10); code != http.StatusCreated {
		t.Errorf("with room again: %d %s", code, body)
	}
	p.end(t)

	if err := os.RemoveAll(filepath.Join(disk, "data", "spill")); err != nil { // as in a copy, or after a restore
		t.Fatal(err)
	}
	remount(t, disk, syscall.MS_RDONLY, "")
	p = serve()
	p.wantState(t, http.StatusServiceUnavailable, "disk is read-only")
	if got := p.countItems(t); got != n-50 {
		t.Errorf("COUNT is %d of %d", got, n-50)
	}
	if code, body := p.create(t, n+1, 100); code < 400 || !strings.Contains(body, "read-only") {
		t.Errorf("a write: %d %s", code, body)
	}
	p.end(t)
	remount(t, disk, 0, "")
}

// An import ends when the disk is full, calls no row bad because of it, and goes on with every row when there is room.
func TestImportOnFullDisk(t *testing.T) {
	disk, dir := smallDisk(t, 64), t.TempDir()
	p := launch(t, "serve", "--data", filepath.Join(disk, "data"), "--auth=false", "--cache-mb", "16")
	p.ready(t)
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, `{"id":"%d","_id":"%d","pk":"a"}`+"\n", i, i)
	}
	file := write(t, dir, "rows.jsonl", text.String())
	for _, api := range []string{"nosql", "mongo"} {
		bad := filepath.Join(dir, api)
		args := []string{"import", file, "--data", filepath.Join(disk, "data"), "--db", api, "--container", "c",
			"--partition-key", "/pk", "--api", api, "--state", bad + ".state", "--bad-rows", bad}
		first := write(t, dir, "first.jsonl", strings.SplitAfter(text.String(), "\n")[0])
		ran(t, 0, append([]string{args[0], first}, args[2:12]...)...) // makes the container
		others := takeAll(t, disk)
		p.wantState(t, http.StatusServiceUnavailable, "all writes are refused")
		_, out := ran(t, 1, args...)
		if !strings.Contains(out, "disk is full") || strings.Contains(out, "bad") {
			t.Errorf("%s: %s", api, out)
		}
		if b, err := os.ReadFile(bad); len(b) > 0 {
			t.Errorf("%s: bad rows: %.200s %v", api, b, err)
		}
		if err := os.Remove(others); err != nil {
			t.Fatal(err)
		}
		p.wantState(t, http.StatusOK, "ready")
		out, _ = ran(t, 0, args...)
		if out != "500 rows: 500 written\n" {
			t.Errorf("%s: %s", api, out)
		}
	}
	p.end(t)
}

// A signal ends a server that hangs while it opens its store.
func TestSignalWhileOpening(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := launch(t, "serve", "--data", data)
	p.ready(t)
	p.end(t)
	manifests, err := filepath.Glob(filepath.Join(data, "store", "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, m := range manifests { // opening them blocks forever, as on a disk that doesn't respond
		if err := os.Remove(m); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(m, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.Command(binary(), "serve", "--data", data, "--nosql-addr", "127.0.0.1:0", "--gremlin-addr", "off",
			"--table-addr", "off",
			"--mongo-addr", "off", "--admin-addr", "off")
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			t.Fatalf("it isn't stuck: %v\n%s", err, log.String())
		case <-time.After(time.Second):
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil || !strings.Contains(log.String(), "Stopped while") {
				t.Errorf("%v: %v\n%s", sig, err, log.String())
			}
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			t.Errorf("%v is ignored", sig)
		}
	}
}
