package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core/kv"
)

// orrery runs a command and returns its output on both streams.
func orrery(t *testing.T, want int, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary(), args...).CombinedOutput()
	var exit *exec.ExitError
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != want {
		t.Fatalf("orrery %s: exit %d, want %d: %s", strings.Join(args, " "), code, want, out)
	}
	return string(out)
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A backup of a running server can be checked, restored and served.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	data, to := filepath.Join(dir, "data"), filepath.Join(dir, "backups")
	p := launch(t, "serve", "--data", data, "--auth=false")
	p.ready(t)
	for _, r := range [][3]string{{"dbs", `{"id":"d"}`}, {"dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],` +
		`"kind":"Hash","version":2}}`}} {
		if code, text := p.ask(t, "POST", r[0], r[1]); code != 201 {
			t.Fatal(code, text)
		}
	}
	for id := range 50 {
		if code, text := p.create(t, id, 1000); code != 201 {
			t.Fatal(code, text)
		}
	}
	wantText(t, orrery(t, 0, "backup", "--to", to, "--data", data), "copied")
	if code, _ := p.create(t, 50, 1000); code != 201 {
		t.Fatal(code)
	}
	var b kv.Backup
	if err := json.Unmarshal([]byte(orrery(t, 0, "backup", "--json", "--to", to, "--endpoint", p.admin)), &b); err !=
		nil || b.Files == 0 {
		t.Fatalf("%+v %v", b, err)
	}
	if code, _ := p.create(t, 51, 1000); code != 201 {
		t.Fatal(code)
	}
	wantText(t, orrery(t, 1, "backup", "--to", "relative", "--endpoint", p.admin), "absolute")
	t.Setenv("ORRERY_TEST_KEY", "d3Jvbmc=")
	wantText(t, orrery(t, 1, "backup", "--to", to, "--endpoint", p.admin, "--key", "env:ORRERY_TEST_KEY"), "401")
	p.end(t)
	wantText(t, orrery(t, 1, "backup", "--to", to, "--data", data), "copy its whole data directory")

	var all []server.BackupEntry
	if err := json.Unmarshal([]byte(orrery(t, 0, "restore", "--from", to, "--list", "--json")), &all); err != nil ||
		len(all) != 2 || !all[1].Whole {
		t.Fatalf("%+v %v", all, err)
	}
	wantText(t, orrery(t, 0, "restore", "--from", to, "--list"), b.Path+": ")
	wantText(t, orrery(t, 0, "check", b.Path), "clean, 2 containers with 51 items")
	wantText(t, orrery(t, 1, "serve", "--data", b.Path, "--admin-addr", "off", "--nosql-addr", "127.0.0.1:0",
		"--mongo-addr", "off",
		"--table-addr", "off", "--gremlin-addr", "off"), "is a backup")
	wantText(t, orrery(t, 1, "restore", "--from", to, "--data", data), "isn't empty")
	wantText(t, orrery(t, 1, "restore", "--from", to), "--data")
	wantText(t, orrery(t, 1, "restore", "--from", dir, "--data", dir+"/x"), "no complete backup")

	for i, want := range []int{50, 51} {
		at := filepath.Join(dir, fmt.Sprint("restored", i))
		wantText(t, orrery(t, 0, "restore", "--from", all[i].Path, "--data", at),
			fmt.Sprintf("2 containers with %d items", want))
		wantText(t, orrery(t, 0, "check", at), "clean")
		p = launch(t, "serve", "--data", at, "--auth=false")
		p.ready(t)
		if n := p.countItems(t); n != want {
			t.Errorf("%d items, want %d", n, want)
		}
		if code, text := p.create(t, 100, 1000); code != 201 || !raisedETag(text) {
			t.Errorf("%d %s", code, text)
		}
		p.end(t)
	}
	if names, err := os.ReadDir(b.Path); err != nil || len(names) != 2 {
		t.Errorf("the backup has %v, %v", names, err)
	}
	wantText(t, orrery(t, 0, "check", b.Path), "clean") // unchanged

	flipByte(t, b.Path)
	wantText(t, orrery(t, 1, "check", b.Path), "is not what it was when the backup was made")
	at := filepath.Join(dir, "damaged")
	wantText(t, orrery(t, 1, "restore", "--from", b.Path, "--data", at), "the backup is damaged")
	wantText(t, orrery(t, 1, "serve", "--data", at, "--admin-addr", "off", "--nosql-addr", "127.0.0.1:0",
		"--mongo-addr", "off",
		"--table-addr", "off", "--gremlin-addr", "off"), "run the same command again")
	wantText(t, orrery(t, 1, "check", at), "run the same command again")
	wantText(t, orrery(t, 1, "repair", at, "--to", at+"-repaired"), "run the same command again")
	saved := filepath.Join(dir, "saved")
	wantText(t, orrery(t, 0, "repair", b.Path, "--to", saved), "51 items")
	p = launch(t, "serve", "--data", saved, "--auth=false")
	p.ready(t)
	if code, text := p.create(t, 100, 1000); code != 201 || !raisedETag(text) {
		t.Errorf("the repaired backup: %d %s", code, text)
	}
	p.end(t)
	wantText(t, orrery(t, 0, "restore", "--from", all[0].Path, "--data", at), "50 items")
}

// flipByte damages a file of a backup.
func flipByte(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "store", "OPTIONS-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[0], b, 0o644); err != nil {
		t.Fatal(err)
	}
}

var etagOfItem = regexp.MustCompile(`"_etag":"\\"([0-9a-f]{8})-([0-9a-f]{4})`)

// raisedETag reports whether the LSN in an item's etag is above all LSNs of a store that was never restored.
func raisedETag(item string) bool {
	m := etagOfItem.FindStringSubmatch(item)
	if m == nil {
		return false
	}
	lsn, err := strconv.ParseUint(m[1]+m[2], 16, 64)
	return err == nil && lsn >= 1<<36
}
