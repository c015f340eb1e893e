package kit

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/orrerytest"
	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// control sends a request to the test controls of a server.
func control(t *testing.T, s *orrerytest.Server, verb, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(verb, s.Admin+"orrery/test"+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+s.Key)
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(text)
}

// A record of the requests of all four APIs makes the same data in another account. It has no credential, and only its
// owner can read it.
func TestRecordAndReplay(t *testing.T) {
	dir := t.TempDir()
	s := orrerytest.Start(t, orrerytest.Configure(func(c *server.Config) { c.RecordDir = dir }))
	a, b := s.Account(t), s.Account(t)
	c := connect(t, a)
	c.put(t, "before") // isn't recorded, but its database and containers make the next requests succeed
	a.Reset(t)
	if code, text := control(t, s, "POST", "/record", `{"name":"one"}`); code != 204 {
		t.Fatalf("record: %d %s", code, text)
	}
	if code, _ := control(t, s, "POST", "/record", `{"name":"two"}`); code != 409 {
		t.Errorf("a second record: %d", code)
	}
	c.put(t, "x")
	c.put(t, "y")
	want := c.seen(t)
	if code, text := control(t, s, "DELETE", "/record", ``); code != 200 {
		t.Fatalf("end of the record: %d %s", code, text)
	}
	c.put(t, "after")

	file := filepath.Join(dir, "one.jsonl")
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v", info.Mode())
	}
	raw, err := os.ReadFile(file)
	must(t, err)
	for _, secret := range []string{a.Key, "uthorization", "sig%3D", "type%3Dmaster", "saslStart", "x-ms-date",
		"X-Ms-Date"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("the record has %q", secret)
		}
	}
	code, text := control(t, s, "POST", "/replay", `{"name":"one","account":"`+b.Name+`"}`)
	var report server.ReplayReport
	if err := json.Unmarshal([]byte(text), &report); err != nil || code != 200 || report.Same != report.Requests ||
		report.Requests < 10 {
		t.Errorf("replay: %d %s", code, text)
	}
	if got := connect(t, b).seen(t); got != want {
		t.Errorf("the other account shows %q, want %q", got, want)
	}
	for body, want := range map[string]int{`{"name":"none"}`: 404, `{"name":"../one"}`: 400,
		`{"name":"one","account":"none"}`: 404, `{"name":"one","endpoint":"http://192.0.2.1:8081"}`: 400,
		`{"name":"one","endpoint":"file:///etc"}`: 400} {
		if code, text := control(t, s, "POST", "/replay", body); code != want {
			t.Errorf("replay %s: %d %s, want %d", body, code, text, want)
		}
	}
	other := orrerytest.Start(t, orrerytest.WithoutControls())
	code, text = control(t, s, "POST", "/replay",
		`{"name":"one","endpoint":"`+other.NoSQL.Endpoint+`","key":"`+other.Key+`"}`)
	report = server.ReplayReport{}
	if err := json.Unmarshal([]byte(text), &report); err != nil || code != 200 || report.Same != report.Requests ||
		report.Requests < 4 {
		t.Errorf("replay to another server: %d %s", code, text)
	}
	without := orrerytest.Start(t)
	if code, _ := control(t, without, "POST", "/record", `{"name":"one"}`); code != 400 {
		t.Errorf("without a directory: %d", code)
	}
}
