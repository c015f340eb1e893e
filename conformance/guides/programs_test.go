package guides

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	_ "github.com/orrerydb/orrery/conformance/harness" // lets this binary run programs
)

var functionName = regexp.MustCompile(`function (\w+)`)

// send sends a signed request to a path below a block's container. azcosmos has no methods for programs.
func (g *guide) send(b block, path, body string, headers map[string]string) (int, []byte) {
	g.t.Helper()
	link := "dbs/" + g.name + "/colls/" + b.args["container"]
	r, err := http.NewRequest("POST", "http://"+g.srv.Addr(server.NoSQL)+"/"+link+"/"+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	kind, _, one := strings.Cut(path, "/")
	if one {
		link += "/" + path
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	r.Header.Set("x-ms-date", date)
	r.Header.Set("authorization", signature(kind, link, date))
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	if k := b.args["key"]; k != "" {
		r.Header.Set("x-ms-documentdb-partitionkey", fmt.Sprintf("[%q]", k))
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	if charge, err := strconv.ParseFloat(resp.Header.Get("x-ms-request-charge"), 64); err == nil {
		g.charge += charge
	}
	return resp.StatusCode, text
}

// signature returns the authorization of a POST with the account's key.
func signature(kind, link, date string) string {
	key, _ := base64.StdEncoding.DecodeString(server.WellKnownKey)
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "post\n%s\n%s\n%s\n\n", kind, link, strings.ToLower(date))
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(m.Sum(nil)))
}

// program stores a program under the name of its function.
func (g *guide) program(b block) {
	m := functionName.FindStringSubmatch(b.text)
	if m == nil {
		g.t.Fatalf("line %d: the function has no name", b.line)
	}
	def := map[string]string{"id": m[1], "body": b.text, "triggerType": b.args["trigger"], "triggerOperation": "All"}
	body, _ := json.Marshal(def)
	if code, text := g.send(b, b.args["program"], string(body), nil); code != http.StatusCreated {
		g.t.Fatalf("line %d: %d %s", b.line, code, text)
	}
	g.charge = 0 // a program is stored once
}

// execute runs a stored procedure, with the block's lines as its arguments, and returns what it answers. If the
// procedure fails, it returns the status.
func (g *guide) execute(b block) []any {
	args := "[" + strings.Join(strings.Split(strings.TrimSpace(b.text), "\n"), ",") + "]"
	code, text := g.send(b, "sprocs/"+b.args["procedure"], args, nil)
	if code != http.StatusOK {
		return []any{float64(code)}
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		g.t.Fatalf("line %d: %v", b.line, err)
	}
	return []any{v}
}

// create creates items with a pre-trigger and returns their statuses.
func (g *guide) create(b block) (codes []any) {
	for line := range strings.Lines(strings.TrimSpace(b.text)) {
		code, _ := g.send(b, "docs", line, map[string]string{"x-ms-documentdb-pre-trigger-include": b.args["trigger"]})
		codes = append(codes, float64(code))
	}
	return codes
}
