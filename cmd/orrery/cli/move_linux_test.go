package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// A store is moved to another directory, though the command is killed again and again, and is served there.
func TestMoveIsKilled(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	p := launch(t, "serve", "--data", from, "--auth=false")
	p.ready(t)
	for _, r := range [][3]string{{"dbs", `{"id":"d"}`}, {"dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],` +
		`"kind":"Hash","version":2}}`}} {
		if code, text := p.ask(t, "POST", r[0], r[1]); code != 201 {
			t.Fatal(code, text)
		}
	}
	const items = 100
	for id := range items {
		if code, text := p.create(t, id, 10_000); code != 201 {
			t.Fatal(code, text)
		}
	}
	wantText(t, orrery(t, 1, "move", "--from", from, "--to", to), "in use by another server")
	p.end(t)
	wantText(t, orrery(t, 2, "move", "--from", from), "want --to, or --abandon")
	wantText(t, orrery(t, 1, "move", "--from", from, "--abandon"), "isn't being moved")
	for after := 2 * time.Millisecond; after < 100*time.Millisecond; after *= 2 {
		cmd := exec.Command(binary(), "move", "--from", from, "--to", to)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	var m server.Moved
	result, err := exec.Command(binary(), "move", "--from", from, "--to", to, "--json").Output() // without its log
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(result, &m); err != nil ||
		m.Items != items || m.From != from || m.To != to {
		t.Errorf("%+v, %v", m, err)
	}
	wantText(t, orrery(t, 0, "move", "--from", from, "--to", to), "it was moved before")
	wantText(t, orrery(t, 1, "serve", "--data", from, "--admin-addr", "off", "--nosql-addr", "127.0.0.1:0",
		"--mongo-addr", "off", "--table-addr", "off", "--gremlin-addr", "off"), "was moved to "+to)
	wantText(t, orrery(t, 0, "check", to), "clean")
	p = launch(t, "serve", "--data", to, "--auth=false")
	p.ready(t)
	if n := p.countItems(t); n != items {
		t.Errorf("%d items", n)
	}
	p.end(t)
	wantText(t, orrery(t, 0, "move", "--from", from, "--abandon"), "can be served")
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	wantText(t, orrery(t, 0, "move", "--from", from, "--to", to), "100 items in ")
}
