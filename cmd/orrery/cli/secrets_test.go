package cli

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// canary is an account key that must not be seen anywhere.
var canary = base64.StdEncoding.EncodeToString([]byte("canary: this key is seen nowhere but where it is used!"))

// No output, state, file of bad rows or message has the key, whatever the import does.
func TestTheKeyIsSeenNowhere(t *testing.T) {
	s := serverFor(t, func(c *server.Config) { c.Key = canary })
	dir := t.TempDir()
	t.Setenv("ORRERY_TEST_CANARY", canary)
	t.Setenv("ORRERY_PROFILES", filepath.Join(dir, "profiles.toml"))
	write(t, dir, "keyfile", canary+"\n")
	write(t, dir, "profiles.toml", "[here]\nendpoint = \"http://"+s.Addr(server.NoSQL)+"\"\nkey = \""+canary+"\"\n")
	file := write(t, dir, "rows.jsonl", `{"id":"1"}`+"\nbad\n"+`{"id":2}`+"\n")
	at := endpoints(s)
	base := []string{"import", file, "--db", "d", "--container", "c", "--partition-key", "/id", "--state",
		filepath.Join(dir, "state"), "--bad-rows", filepath.Join(dir, "bad")}
	for _, c := range []struct {
		name string
		code int
		args []string
		says string
	}{
		{"on the command line", 1, append(at, "--key", canary), "a key on the command line is refused"},
		{"as a variable", 1, append(at, "--key", "env:ORRERY_TEST_CANARY"), "2 rows are bad"},
		{"as a file", 1, append(at, "--key", "file:"+filepath.Join(dir, "keyfile")), "2 rows are bad"},
		{"by a profile", 1, []string{"--profile", "here"}, "2 rows are bad"},
		{"ended early", 1, append(at, "--key", "env:ORRERY_TEST_CANARY", "--max-errors", "0"), "too many rows are bad"},
		{"by a wrong flag", 2, append(at, "--kex", canary), ""},
	} {
		var out, errOut bytes.Buffer
		if code := run(append(append([]string{}, base...), c.args...), &out, &errOut); code != c.code ||
			!strings.Contains(errOut.String(), c.says) {
			t.Errorf("%s: exit %d, %s", c.name, code, errOut.String())
		}
		for what, text := range map[string]string{"output": out.String(), "error": errOut.String(),
			"state": content(dir, "state"), "bad rows": content(dir, "bad")} {
			if strings.Contains(text, canary) || strings.Contains(text, canary[:20]) {
				t.Errorf("%s: the key is in the %s: %s", c.name, what, text)
			}
		}
	}
	if err := os.Chmod(filepath.Join(dir, "profiles.toml"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errOut := ran(t, 1, append(base, "--profile", "here")...); !strings.Contains(errOut, "chmod 600") {
		t.Errorf("a profile that others may read: %q", errOut)
	}
}

// Each command that takes a key refuses one on its command line, takes it from a variable and from a file, and shows it
// in none of these cases.
func TestKeysOfEveryCommand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ORRERY_TEST_CANARY", canary)
	keyFile := write(t, dir, "keyfile", canary+"\n")
	rows := write(t, dir, "rows.jsonl", "{}\n")
	refusal := "a key on the command line is refused"
	nowhere, noPort := "http://127.0.0.1:1", "127.0.0.1:99999999"
	for _, c := range [][]string{
		{"serve", "--memory", "--nosql-addr", noPort},
		{"emulator", "--nosql-addr", noPort},
		{"demo", "--nosql-addr", noPort},
		{"query", "SELECT 1", "--db", "d", "--container", "c", "--endpoint", nowhere},
		{"tail", "d/c", "--endpoint", nowhere},
		{"partitions", "d/c", "--endpoint", nowhere},
		{"partitions", "split", "d/c", "0", "--endpoint", nowhere},
		{"partitions", "merge", "d/c", "0", "--endpoint", nowhere},
		{"backup", "--to", filepath.Join(dir, "backup"), "--endpoint", nowhere},
		{"import", rows, "--db", "d", "--container", "c", "--endpoint", nowhere, "--state", filepath.Join(dir, "state"),
			"--bad-rows", filepath.Join(dir, "bad")},
		{"export", filepath.Join(dir, "out.jsonl"), "--db", "d", "--container", "c", "--endpoint", nowhere},
		{"shell", "--eval", "SELECT 1", "--db", "d", "--container", "c", "--endpoint", nowhere},
	} {
		for _, key := range []struct {
			value   string
			refused bool
		}{{canary, true}, {"env:ORRERY_TEST_CANARY", false}, {"file:" + keyFile, false},
			{server.WellKnownKey, false}} {
			var out, errOut bytes.Buffer
			code := run(append(slices.Clone(c), "--key", key.value), &out, &errOut)
			all := out.String() + errOut.String() + content(dir, "state") + content(dir, "bad")
			if code == 0 || strings.Contains(all, refusal) != key.refused || strings.Contains(all, canary[:20]) {
				t.Errorf("%s --key %.10s: exit %d: %s", c[0], key.value, code, all)
			}
		}
	}
	// Nobody lists a command here whose flag --key is new.
	for _, c := range runnable((&commands{}).root(&streams{io.Discard, io.Discard})) {
		tried := "serve emulator demo query tail partitions split merge backup import export shell"
		if f := c.Flags().Lookup("key"); f != nil && !strings.Contains(tried, c.Name()) {
			t.Errorf("%s has a flag --key and isn't tried", c.CommandPath())
		}
	}
}

func content(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return string(b)
}

// A server that sends the client elsewhere gets no second request, and nobody gets the signature.
func TestRedirectsAreRefused(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"import", write(t, dir, "rows.jsonl", "{}\n"), "--db", "d", "--container", "c", "--state", filepath.Join(dir,
			"state")},
		{"export", filepath.Join(dir, "out.jsonl"), "--db", "d", "--container", "c"},
		{"export", filepath.Join(dir, "out.table.json"), "--container", "c", "--table-endpoint", s.URL},
		{"query", "SELECT 1", "--db", "d", "--container", "c"},
		{"shell", "--db", "d", "--container", "c", "--eval", "SELECT 1"},
		{"shell", "--db", "d", "--container", "c", "--eval", ":tail"},
		{"shell", "--db", "d", "--container", "c", "--admin-endpoint", s.URL, "--eval", ":partitions"},
		{"tail", "d/c"},
		{"partitions", "d/c"},
		{"backup", "--to", filepath.Join(dir, "backup")},
		{"cert", "show"},
		{"health", "--admin", s.URL},
	} {
		if args[0] != "health" {
			args = append(args, "--endpoint", s.URL)
		}
		if _, errOut := ran(t, 1, args...); !strings.Contains(errOut,
			"sends the client to another address, which is refused") {
			t.Errorf("%v: %q", args, errOut)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the other server got %d requests", asked.Load())
	}
}

// A wrong address is told at once, and not after the time for which a server that starts again is waited for.
func TestNobodyAnswers(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "rows.jsonl", "{}\n")
	for _, api := range []string{"nosql", "mongo"} {
		began := time.Now()
		_, errOut := ran(t, 1, "import", file, "--db", "d", "--api", api, "--endpoint", "http://127.0.0.1:1",
			"--mongo-endpoint", "127.0.0.1:1", "--state", filepath.Join(dir, "state"))
		if !strings.Contains(errOut, "no server answers at") || time.Since(began) > door.Patience/2 {
			t.Errorf("%s: %v %s", api, time.Since(began), errOut)
		}
	}
}
