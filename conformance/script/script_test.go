// Package script sends requests that are written as text, and compares the replies with the expectations below them. It
// is for clients that can't be run here: the requests of .NET, exact to the byte where that matters, in the order in
// which that client sends them.
//
// A script is a list of exchanges. Lines that begin with # are comments.
//
//	> POST /dbs/db/colls/c/docs      method and path
//	> x-ms-version: 2020-07-15       headers; date and signature are added
//	> @rid                           signed by the last resource id of the path, in lower case
//	> @base64                        the body is base64 of the bytes that are sent
//
//	{"id":"1"}                       the body, up to the reply
//
//	< 201                            status of the reply
//	< etag: /^".+"$/                 a header; /../ is a regular expression, "-" means absent
//	< $.id = "1"                     a member of the body, as JSON; $.a[0].b, $.length for arrays
//	< $.message ~ some words         text that a member contains
//	< $coll = $._rid                 keeps a member, or a header (= header etag), for later: ${coll} in anything
package script

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// exchange is one request with the expectations about its reply.
type exchange struct {
	line         int
	method, path string
	headers      [][2]string
	byRID, raw   bool
	body         string
	want         []string
	wantLines    []int
}

func parse(t *testing.T, file string) (out []exchange) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var x *exchange
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 4<<20)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "> "):
			text := line[2:]
			if x == nil || len(x.want) > 0 || x.body != "" {
				method, path, ok := strings.Cut(text, " ")
				if !ok {
					t.Fatalf("%s:%d: %s", file, n, line)
				}
				out = append(out, exchange{line: n, method: method, path: path})
				x = &out[len(out)-1]
				continue
			}
			switch name, value, ok := strings.Cut(text, ": "); {
			case text == "@rid":
				x.byRID = true
			case text == "@base64":
				x.raw = true
			case ok:
				x.headers = append(x.headers, [2]string{name, value})
			default:
				t.Fatalf("%s:%d: %s", file, n, line)
			}
		case strings.HasPrefix(line, "< ") && x != nil:
			x.want, x.wantLines = append(x.want, line[2:]), append(x.wantLines, n)
		case x != nil && strings.TrimSpace(line) != "":
			x.body += strings.TrimSpace(line)
		case strings.TrimSpace(line) != "":
			t.Fatalf("%s:%d: %s", file, n, line)
		}
	}
	return out
}

// run is a running script.
type run struct {
	t    *testing.T
	s    *harness.Server
	file string
	vars map[string]string
}

var varUse = regexp.MustCompile(`\$\{(\w+)\}`)

// fill replaces references in a text by the kept values.
func (r *run) fill(s string) string {
	return varUse.ReplaceAllStringFunc(s, func(m string) string {
		v, ok := r.vars[m[2:len(m)-1]]
		if !ok {
			r.t.Fatalf("%s: %s was never kept", r.file, m)
		}
		return v
	})
}

func (r *run) do(x *exchange) {
	body := []byte(r.fill(x.body))
	if x.raw {
		var err error
		if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
			r.t.Fatal(err)
		}
	}
	path := r.fill(x.path)
	req, err := http.NewRequest(x.method, "http://"+r.s.Addr(server.NoSQL)+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	req.Header.Set("x-ms-date", date)
	req.Header.Set("authorization", r.sign(x, path, date))
	for _, h := range x.headers {
		req.Header.Set(h[0], r.fill(h[1]))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatalf("%s:%d: %v", r.file, x.line, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(x.want) == 0 {
		r.t.Errorf("%s:%d: nothing is expected", r.file, x.line)
	}
	for i, w := range x.want {
		if err := r.check(w, res, text); err != nil {
			r.t.Errorf("%s:%d: %v\n%s %.2000s", r.file, x.wantLines[i], err, res.Status, text)
		}
	}
}

// sign returns the master-key signature as documented by the service.
func (r *run) sign(x *exchange, path, date string) string {
	path, _, _ = strings.Cut(path, "?")
	path, err := url.PathUnescape(strings.Trim(path, "/"))
	if err != nil {
		r.t.Fatal(err)
	}
	segs := strings.Split(path, "/")
	kind, link := segs[len(segs)-1], strings.Join(segs[:len(segs)-1], "/")
	if len(segs)%2 == 0 {
		kind, link = segs[len(segs)-2], path
	}
	if path == "" {
		kind, link = "", ""
	}
	if x.byRID || kind == "offers" {
		if link == "offers" {
			link = ""
		}
		link = strings.ToLower(link[strings.LastIndex(link, "/")+1:])
	}
	key, err := base64.StdEncoding.DecodeString(r.s.Key())
	if err != nil {
		r.t.Fatal(err)
	}
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "%s\n%s\n%s\n%s\n\n", strings.ToLower(x.method), kind, link, strings.ToLower(date))
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(m.Sum(nil)))
}

var (
	keeping = regexp.MustCompile(`^\$(\w+) = (\$\S*|header \S+)$`)
	member  = regexp.MustCompile(`^(\$\S*) (=|~) (.*)$`)
)

// check compares a reply with one expectation.
func (r *run) check(want string, res *http.Response, body []byte) error {
	if code, err := strconv.Atoi(want); err == nil {
		if res.StatusCode != code {
			return fmt.Errorf("status %d, want %d", res.StatusCode, code)
		}
		return nil
	}
	if m := keeping.FindStringSubmatch(want); m != nil {
		v := res.Header.Get(strings.TrimPrefix(m[2], "header "))
		if strings.HasPrefix(m[2], "$") {
			var err error
			if v, err = pick(body, m[2]); err != nil {
				return err
			}
			if s, err := strconv.Unquote(v); err == nil {
				v = s
			}
		}
		if v == "" {
			return fmt.Errorf("there is no %s to keep", m[2])
		}
		r.vars[m[1]] = v
		return nil
	}
	if m := member.FindStringSubmatch(want); m != nil {
		got, err := pick(body, m[1])
		if err != nil {
			return err
		}
		exp := r.fill(m[3])
		if m[2] == "~" && !strings.Contains(got, exp) || m[2] == "=" && got != compact(exp) {
			return fmt.Errorf("%s is %s", m[1], got)
		}
		return nil
	}
	name, exp, ok := strings.Cut(want, ": ")
	if !ok {
		return fmt.Errorf("%q can't be read", want)
	}
	got := res.Header.Get(name)
	switch exp = r.fill(exp); {
	case exp == "-":
		ok = got == ""
	case len(exp) > 1 && exp[0] == '/' && exp[len(exp)-1] == '/':
		ok = regexp.MustCompile(exp[1 : len(exp)-1]).MatchString(got)
	default:
		ok = got == exp
	}
	if !ok {
		return fmt.Errorf("%s is %q", name, got)
	}
	return nil
}

// pick returns a member of a JSON body as compact JSON, or "nothing" if it is absent.
func pick(body []byte, path string) (string, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	for _, step := range strings.FieldsFunc(path[1:], func(c rune) bool { return c == '.' || c == '[' || c == ']' }) {
		switch x := v.(type) {
		case map[string]any:
			m, ok := x[step]
			if !ok {
				return "nothing", nil
			}
			v = m
		case []any:
			if step == "length" {
				return strconv.Itoa(len(x)), nil
			}
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(x) {
				return "nothing", nil
			}
			v = x[i]
		default:
			return "nothing", nil
		}
	}
	return marshal(v), nil
}

func marshal(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimSpace(b.String())
}

// compact formats JSON like pick. Other text is returned unchanged.
func compact(s string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return s
	}
	return marshal(v)
}

// Each script has its own server, with the default strictness.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			xs := parse(t, f)
			cfg := server.Ephemeral()
			cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
			r := &run{t: t, s: harness.StartWith(t, cfg), file: filepath.Base(f), vars: map[string]string{}}
			r.vars["endpoint"] = r.s.Addr(server.NoSQL)
			for i := range xs {
				r.do(&xs[i])
			}
			if len(xs) < 3 {
				t.Errorf("%d exchanges", len(xs))
			}
		})
	}
}
