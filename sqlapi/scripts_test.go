package sqlapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// fakeScripts runs Go functions in place of JavaScript, by the text of the program.
type fakeScripts map[string]func(*fakeRun) error

// fakeRun is one run of a program.
type fakeRun struct {
	script.Run
	ctx  context.Context
	host script.Host
	res  script.Result
}

func (f fakeScripts) Run(ctx context.Context, r script.Run, h script.Host) (script.Result, error) {
	run := &fakeRun{Run: r, ctx: ctx, host: h}
	p, ok := f[r.Source]
	if !ok {
		return script.Result{}, &script.Error{Status: 400, Sub: 65535, Body: "SyntaxError"}
	}
	err := p(run)
	return run.res, err
}

// Functions implements Scripts. There are none.
func (f fakeScripts) Functions(map[string]string) *script.Functions { return nil }

// do calls the collection object. An error of the call ends the run as if the program had thrown it.
func (r *fakeRun) do(name, link, body, options string) (string, error) {
	if link == "" {
		link = r.Links.Alt
	}
	op := script.Op{Name: name, Link: link, Options: []byte(options)}
	if name == "queryDocuments" {
		op.Query = []byte(body)
	} else {
		op.Body = []byte(body)
	}
	rep, err := r.host.Do(r.ctx, op)
	if err != nil {
		return "", &script.Error{Status: 400, Sub: err.Status, Body: "Encountered exception: " + err.Body}
	}
	r.res.Log += string(rep.Options)
	return string(rep.Body), nil
}

// docLink returns the link of an item by its name.
func (r *fakeRun) docLink(id string) string { return r.Links.Alt + "/docs/" + id }

func withScripts(t *testing.T, f fakeScripts) *api {
	a := withContainer(t)
	a.srv.opt.Scripts = f
	return a
}

// addProgram stores a program whose text is its name.
func (a *api) addProgram(segment, id, more string) {
	a.t.Helper()
	a.do("POST", "/dbs/db/colls/c/"+segment, fmt.Sprintf(`{"id":%q,"body":%q%s}`, id, id, more)).is(201)
}

func TestProgramsAreResources(t *testing.T) {
	a := withContainer(t)
	kinds := []struct{ segment, feed, more, changed string }{
		{"sprocs", "StoredProcedures", "", ""},
		{"triggers", "Triggers", `,"triggerType":"Pre","triggerOperation":"All"`,
			`,"triggerType":"post","triggerOperation":"Create"`},
		{"udfs", "UserDefinedFunctions", "", ""},
	}
	for _, k := range kinds {
		t.Run(k.segment, func(t *testing.T) {
			feed := "/dbs/db/colls/c/" + k.segment
			text := "function (a) {\n\treturn \"é\" + a;\n}"
			quoted, _ := json.Marshal(text)
			body := fmt.Sprintf(`{"id":"one","body":%s%s}`, quoted, k.more)
			made := a.do("POST", feed, body).is(201)
			var got struct{ ID, Body, TriggerType, TriggerOperation, RID, Self, ETag string }
			shown := func(r *reply) map[string]any {
				t.Helper()
				m := map[string]any{}
				if err := json.Unmarshal([]byte(r.body), &m); err != nil {
					t.Fatal(err)
				}
				for name, to := range map[string]*string{"id": &got.ID, "body": &got.Body, "_rid": &got.RID,
					"_self": &got.Self, "_etag": &got.ETag, "triggerType": &got.TriggerType,
					"triggerOperation": &got.TriggerOperation} {
					*to, _ = m[name].(string)
				}
				return m
			}
			shown(made)
			if got.ID != "one" || got.Body != text || len(got.RID) != 24 || got.ETag != made.h.Get("etag") ||
				!strings.HasSuffix(got.Self, "/"+k.segment+"/"+got.RID+"/") {
				t.Errorf("created %+v", got)
			}
			if k.more != "" && (got.TriggerType != "Pre" || got.TriggerOperation != "All") {
				t.Errorf("created %+v", got)
			}
			a.do("POST", feed, body).is(409)
			a.do("GET", feed+"/one", "").is(200).has(`"id":"one"`)
			a.do("GET", "/"+got.Self, "").is(200).has(`"id":"one"`)
			a.do("GET", feed+"/one", "", "if-none-match: "+got.ETag).is(304)
			a.do("GET", feed+"/two", "").is(404)
			a.do("GET", feed, "").is(200).has(`"` + k.feed + `":[{"id":"one"`).has(`"_count":1`)
			a.do("POST", feed, `{"query":"SELECT VALUE c.id FROM c WHERE c.id = 'one'"}`,
				"x-ms-documentdb-isquery: true", "content-type: application/query+json").is(200).has(`["one"]`)

			more := k.changed
			if more == "" {
				more = k.more
			}
			changed := fmt.Sprintf(`{"id":"one","body":"function () {}"%s}`, more)
			a.do("PUT", feed+"/one", changed, `if-match: "other"`).is(412)
			a.do("PUT", feed+"/one", changed, "if-match: "+got.ETag).is(200).has(`"body":"function () {}"`)
			a.do("PUT", feed+"/two", changed).is(404)
			a.do("POST", feed, body, "x-ms-documentdb-is-upsert: true").is(200)
			a.do("POST", feed, strings.Replace(body, "one", "two", 1), "x-ms-documentdb-is-upsert: true").is(201)
			a.do("DELETE", feed+"/two", "").is(204)
			a.do("DELETE", feed+"/two", "").is(404)

			for _, bad := range []string{``, `[]`, `{"id":"x"}`, `{"id":"x","body":7}`, `{"id":"x","body":""}`,
				`{"id":"x","body":null}`, `{"body":"function () {}"}`, `{"id":"a/b","body":"f"}`,
				`{"id":7,"body":"f"}`} {
				if strings.HasSuffix(bad, `"f"}`) {
					bad = bad[:len(bad)-1] + k.more + "}"
				}
				a.do("POST", feed, bad).is(400)
			}
			a.do("POST", feed, `{"id":"x","body":"`+strings.Repeat("x", maxBody)+`"}`).is(413)
			a.do("POST", "/dbs/db/colls/none/"+k.segment, body).is(404).sub("1003")
			a.do("GET", "/dbs/none/colls/c/"+k.segment+"/one", "").is(404).sub("1003")
		})
	}
	for _, bad := range []string{`"triggerType":"Pre"`, `"triggerOperation":"All"`,
		`"triggerType":"Before","triggerOperation":"All"`, `"triggerType":"Pre","triggerOperation":"Read"`,
		`"triggerType":1,"triggerOperation":"All"`} {
		a.do("POST", "/dbs/db/colls/c/triggers", `{"id":"x","body":"f",`+bad+`}`).is(400)
	}
	a.do("GET", "/dbs/db/colls/c", "", "x-ms-documentdb-populatequotainfo: true").is(200)
	a.do("DELETE", "/dbs/db/colls/c", "").is(204)
	a.do("GET", "/dbs/db/colls/c/sprocs/one", "").is(404).sub("1003")
}

func TestProgramsHaveLimits(t *testing.T) {
	a := withContainer(t)
	for segment, most := range map[string]int{"sprocs": 100, "triggers": 25, "udfs": 50} {
		for i := range most {
			a.addProgram(segment, fmt.Sprintf("p%d", i), `,"triggerType":"Pre","triggerOperation":"All"`)
		}
		a.do("POST", "/dbs/db/colls/c/"+segment, `{"id":"x","body":"f","triggerType":"Pre","triggerOperation":"All"}`).
			is(403)
	}
	r := a.do("GET", "/dbs/db/colls/c", "", "x-ms-documentdb-populatequotainfo: true").is(200)
	if u := r.h.Get("x-ms-resource-usage"); !strings.HasPrefix(u, "functions=50;storedProcedures=100;triggers=25;") {
		t.Errorf("usage is %s", u)
	}
}

// program returns a Scripts with one program, called p.
func program(f func(r *fakeRun) error) fakeScripts { return fakeScripts{"p": f} }

const execute = "/dbs/db/colls/c/sprocs/p"

func TestProcedureSeesItsWrites(t *testing.T) {
	var out []string
	a := withScripts(t, program(func(r *fakeRun) error {
		out = nil
		step := func(name, link, body, options string) error {
			got, err := r.do(name, link, body, options)
			out = append(out, got)
			return err
		}
		if err := step("createDocument", "", `{"id":"new","pk":"a","n":1}`, ""); err != nil {
			return err
		}
		var made struct {
			Self string `json:"_self"`
			ETag string `json:"_etag"`
		}
		_ = json.Unmarshal([]byte(out[0]), &made)
		etag, _ := json.Marshal(made.ETag)
		for _, s := range [][4]string{
			{"readDocument", made.Self, "", ""},
			{"replaceDocument", made.Self, `{"id":"new","pk":"a","n":2}`, `{"etag":` + string(etag) + `}`},
			{"readDocument", r.docLink("new"), "", ""},
			{"upsertDocument", r.Links.Self, `{"id":"old","pk":"a","n":5}`, ""},
			{"queryDocuments", "", `{"query":"SELECT VALUE c.n FROM c ORDER BY c.n"}`, ""},
			{"queryDocuments", "", `{"query":"SELECT VALUE COUNT(1) FROM c"}`, ""},
			{"deleteDocument", r.docLink("gone"), "", ""},
			{"queryDocuments", "", `{"query":"SELECT VALUE c.id FROM c WHERE c.n > @n",` +
				`"parameters":[{"name":"@n","value":0}]}`, ""},
			{"readDocuments", "", "", `{"pageSize":1}`},
		} {
			if err := step(s[0], s[1], s[2], s[3]); err != nil {
				return err
			}
		}
		r.res.Body = []byte(out[0])
		return nil
	}))
	a.addProgram("sprocs", "p", "")
	docs := "/dbs/db/colls/c/docs"
	for _, d := range []string{`{"id":"old","pk":"a","n":3}`, `{"id":"gone","pk":"a","n":4}`} {
		a.do("POST", docs, d, key("a")).is(201)
	}
	a.do("POST", docs, `{"id":"other","pk":"b","n":4}`, key("b")).is(201)
	r := a.do("POST", execute, `[]`, key("a")).is(200)
	if len(out) != 10 {
		t.Fatalf("%d answers: %v", len(out), out)
	}
	for i, want := range map[int]string{1: `"n":1`, 3: `"n":2`, 5: `[2,4,5]`, 6: `[3]`, 7: ``, 8: `["old","new"]`,
		9: `"id":"old"`} {
		if !strings.Contains(out[i], want) {
			t.Errorf("answer %d is %s, want %s", i, out[i], want)
		}
	}
	if r.h.Get("x-ms-session-token") == "" || r.h.Get("x-ms-request-charge") == "0.00" {
		t.Errorf("headers are %v", r.h)
	}
	// What the reply shows of a new item is what a client reads afterwards, except for its later versions.
	now := a.do("GET", docs+"/new", "", key("a")).is(200).has(`"n":2`)
	var first, last struct {
		RID  string `json:"_rid"`
		Self string `json:"_self"`
	}
	if json.Unmarshal([]byte(r.body), &first) != nil || json.Unmarshal([]byte(now.body), &last) != nil ||
		first != last {
		t.Errorf("the reply is %s, the item %s", r.body, now.body)
	}
	a.do("GET", docs+"/gone", "", key("a")).is(404)
}

// TestProcedureReplyHasFinalETags returns a created item from a procedure: the client can use its etag.
func TestProcedureReplyHasFinalETags(t *testing.T) {
	a := withScripts(t, program(func(r *fakeRun) error {
		got, err := r.do("createDocument", "", `{"id":"new","pk":"a"}`, "")
		r.res.Body = []byte(got)
		return err
	}))
	a.addProgram("sprocs", "p", "")
	r := a.do("POST", execute, ``, key("a")).is(200)
	if now := a.do("GET", "/dbs/db/colls/c/docs/new", "", key("a")).is(200); now.body != r.body {
		t.Errorf("the reply is %s, the item %s", r.body, now.body)
	}
}

// TestProcedureIsAllOrNothing lets a procedure fail after each of its steps.
func TestProcedureIsAllOrNothing(t *testing.T) {
	a := withScripts(t, program(func(r *fakeRun) error {
		var stop []int
		_ = json.Unmarshal(r.Args, &stop)
		for i, id := range []string{"book1", "book2", "book3"} {
			if stop[0] == i {
				return &script.Error{Status: 400, Sub: 4711, Body: "Encountered exception while executing Javascript."}
			}
			if _, err := r.do("createDocument", "", fmt.Sprintf(`{"id":%q,"pk":"a"}`, id), ""); err != nil {
				return err
			}
		}
		return nil
	}))
	a.addProgram("sprocs", "p", "")
	query := func() *reply {
		return a.do("POST", "/dbs/db/colls/c/docs", `{"query":"SELECT VALUE COUNT(1) FROM c"}`, key("a"),
			"x-ms-documentdb-isquery: true", "content-type: application/query+json").is(200)
	}
	for i := range 3 {
		a.do("POST", execute, fmt.Sprintf(`[%d]`, i), key("a")).is(400).sub("4711").has("Encountered exception")
		query().has(`"Documents":[0]`)
	}
	a.do("POST", execute, `[9]`, key("a")).is(200)
	query().has(`"Documents":[3]`)
	a.do("POST", execute, `[9]`, key("a")).is(400).sub("409")
}

// TestProcedureRunsAgainOnConflict changes what a procedure has read while it runs.
func TestProcedureRunsAgainOnConflict(t *testing.T) {
	var a *api
	runs := 0
	a = withScripts(t, program(func(r *fakeRun) error {
		runs++
		got, err := r.do("queryDocuments", "", `{"query":"SELECT VALUE COUNT(1) FROM c"}`, "")
		if err != nil {
			return err
		}
		if runs == 1 {
			a.do("POST", "/dbs/db/colls/c/docs", `{"id":"between","pk":"a"}`, key("a")).is(201)
		}
		r.res.Body = []byte(got)
		_, err = r.do("upsertDocument", "", `{"id":"count","pk":"a","n":`+strings.Trim(got, "[]")+`}`, "")
		return err
	}))
	a.addProgram("sprocs", "p", "")
	a.do("POST", execute, `[]`, key("a")).is(200).has(`[1]`)
	if runs != 2 {
		t.Errorf("the program ran %d times", runs)
	}
	a.do("GET", "/dbs/db/colls/c/docs/count", "", key("a")).is(200).has(`"n":1`)
}

// TestFiftyProceduresAddUp runs a procedure that adds a book and raises its author's count 50 times at once.
func TestFiftyProceduresAddUp(t *testing.T) {
	a := withScripts(t, program(func(r *fakeRun) error {
		var args []string
		_ = json.Unmarshal(r.Args, &args)
		got, err := r.do("readDocument", r.docLink("author"), "", "")
		if err != nil {
			return err
		}
		var author struct{ CountOfBooks int }
		_ = json.Unmarshal([]byte(got), &author)
		if _, err = r.do("createDocument", "", fmt.Sprintf(`{"id":%q,"pk":"a"}`, args[0]), ""); err != nil {
			return err
		}
		_, err = r.do("replaceDocument", r.docLink("author"),
			fmt.Sprintf(`{"id":"author","pk":"a","countOfBooks":%d}`, author.CountOfBooks+1), "")
		return err
	}))
	a.addProgram("sprocs", "p", "")
	a.do("POST", "/dbs/db/colls/c/docs", `{"id":"author","pk":"a","countOfBooks":0}`, key("a")).is(201)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { a.do("POST", execute, fmt.Sprintf(`["b%d"]`, i), key("a")).is(200) })
	}
	wg.Wait()
	a.do("GET", "/dbs/db/colls/c/docs/author", "", key("a")).has(`"countOfBooks":50`)
}

func TestExecuteRefuses(t *testing.T) {
	a := withScripts(t, program(func(r *fakeRun) error { return nil }))
	a.addProgram("sprocs", "p", "")
	a.addProgram("sprocs", "broken", "")
	a.do("POST", execute, `[]`).is(400).has("PartitionKey value must be supplied")
	a.do("POST", execute, `{}`, key("a")).is(400)
	a.do("POST", execute, `[1`, key("a")).is(400)
	a.do("POST", execute, `["`+strings.Repeat("x", maxBody)+`"]`, key("a")).is(413)
	a.do("POST", "/dbs/db/colls/c/sprocs/none", `[]`, key("a")).is(404)
	a.do("POST", "/dbs/db/colls/c/sprocs/broken", `[]`, key("a")).is(400).sub("65535")
	a.do("POST", execute, `[]`, key("a")).is(200)
	a.srv.opt.Scripts = nil
	a.do("POST", execute, `[]`, key("a")).is(400).has("switched off")
}

// TestScriptErrorsHaveTheirStatus lets the engine end a run in each of its ways.
func TestScriptErrorsHaveTheirStatus(t *testing.T) {
	var thrown error
	a := withScripts(t, program(func(r *fakeRun) error {
		if _, err := r.do("createDocument", "", `{"id":"x","pk":"a"}`, ""); err != nil {
			return err
		}
		return thrown
	}))
	a.addProgram("sprocs", "p", "")
	for _, e := range []struct {
		thrown error
		code   int
		sub    string
	}{
		{&script.Error{Status: 400, Body: "threw"}, 400, ""},
		{&script.Error{Status: 400, Sub: 409, Body: "threw"}, 400, "409"},
		{&script.Error{Status: 403, Body: "blocked"}, 403, ""},
		{&script.Error{Status: 408, Body: "time"}, 408, ""},
		{&script.Error{Status: 413, Body: "large"}, 413, ""},
		{&script.Error{Status: 449, Body: "again"}, 449, ""},
		{&script.Error{Status: 503, Body: "no worker"}, 503, ""},
		{errors.New("broken pipe"), 500, ""},
	} {
		thrown = e.thrown
		a.do("POST", execute, `[]`, key("a")).is(e.code).sub(e.sub)
		a.do("GET", "/dbs/db/colls/c/docs/x", "", key("a")).is(404)
	}
}

func TestScriptLog(t *testing.T) {
	a := withScripts(t, program(func(r *fakeRun) error {
		if r.Log {
			r.res.Log = "a b\n100%é"
		}
		return nil
	}))
	a.addProgram("sprocs", "p", "")
	r := a.do("POST", execute, `[]`, key("a"), "x-ms-documentdb-script-enable-logging: true").is(200)
	if got, err := url.PathUnescape(r.h.Get("x-ms-documentdb-script-log-results")); err != nil || got != "a b\n100%é" {
		t.Errorf("the log is %q: %v", got, err)
	}
	if r := a.do("POST", execute, `[]`, key("a")).is(200); r.h.Get("x-ms-documentdb-script-log-results") != "" {
		t.Error("a log that nobody asked for")
	}
}

// TestHostRefuses makes calls of the collection object that must fail.
func TestHostRefuses(t *testing.T) {
	var op script.Op
	var got *script.Error
	a := withScripts(t, program(func(r *fakeRun) error {
		do := op
		do.Link = strings.ReplaceAll(strings.ReplaceAll(do.Link, "SELF/", r.Links.Self), "ALT/", r.Links.Alt+"/")
		_, got = r.host.Do(r.ctx, do)
		return nil
	}))
	a.addProgram("sprocs", "p", "")
	a.do("POST", "/dbs/db/colls", `{"id":"d","partitionKey":{"paths":["/pk"],"kind":"Hash"}}`).is(201)
	docs := "/dbs/db/colls/c/docs"
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a")).is(201)
	b := a.do("POST", docs, `{"id":"2","pk":"b"}`, key("b")).is(201)
	var of struct {
		Self string `json:"_self"`
	}
	_ = json.Unmarshal([]byte(b.body), &of)
	doc := []byte(`{"id":"1","pk":"a"}`)
	for _, c := range []struct {
		op     script.Op
		status int
		text   string
	}{
		{script.Op{Name: "createDocument", Link: "ALT/", Body: doc}, 409, ""},
		{script.Op{Name: "createDocument", Link: "ALT/", Body: []byte(`{"id":"3","pk":"b"}`)}, 400, "cannot reference"},
		{script.Op{Name: "createDocument", Link: "ALT/", Body: []byte(`{"pk":"a"}`)}, 400, "id"},
		{script.Op{Name: "createDocument", Link: "ALT/", Body: []byte(`{`)}, 400, ""},
		{script.Op{Name: "createDocument", Link: "dbs/db/colls/d/", Body: doc}, 400, "outside current collection"},
		{script.Op{Name: "createDocument", Link: "dbs/db", Body: doc}, 400, "Invalid collection link"},
		{script.Op{Name: "createDocument", Link: "ALT/", Body: doc, Options: []byte(`{"indexAction":"never"}`)},
			400, ""},
		{script.Op{Name: "createDocument", Link: "ALT/", Body: doc, Options: []byte(`[]`)}, 400, "options"},
		{script.Op{Name: "readDocument", Link: "ALT/"}, 400, "Invalid document link"},
		{script.Op{Name: "readDocument", Link: "ALT/docs/2"}, 404, ""},
		{script.Op{Name: "readDocument", Link: of.Self}, 404, ""},
		{script.Op{Name: "readDocument", Link: "ALT/docs/%31"}, 404, ""}, // a link is no URL
		{script.Op{Name: "readDocument", Link: "dbs/db/colls/d/docs/1"}, 400, "outside current collection"},
		{script.Op{Name: "replaceDocument", Link: "ALT/docs/9", Body: []byte(`{"id":"9","pk":"a"}`)}, 404, ""},
		{script.Op{Name: "replaceDocument", Link: "ALT/docs/9", Body: doc}, 400, ""},
		{script.Op{Name: "replaceDocument", Link: "ALT/docs/1", Body: doc, Options: []byte(`{"etag":"x"}`)}, 412, ""},
		{script.Op{Name: "upsertDocument", Link: "ALT/", Body: doc, Options: []byte(`{"etag":"x"}`)}, 412, ""},
		{script.Op{Name: "deleteDocument", Link: "ALT/docs/9"}, 404, ""},
		{script.Op{Name: "deleteDocument", Link: "ALT/docs/1", Options: []byte(`{"etag":"x"}`)}, 412, ""},
		{script.Op{Name: "queryDocuments", Link: "ALT/", Query: []byte(`{"query":"SELEC"}`)}, 400, "Syntax error"},
		{script.Op{Name: "queryDocuments", Link: "ALT/", Query: []byte(`{}`)}, 400, ""},
		{script.Op{Name: "queryDocuments", Link: "ALT/", Query: []byte(`{"query":"SELECT * FROM c"}`),
			Options: []byte(`{"continuation":"x"}`)}, 400, ""},
		{script.Op{Name: "createDocument", Link: "ALT/",
			Body: []byte(`{"id":"3","pk":"a","x":"` + strings.Repeat("x", maxBody) + `"}`)}, 413, ""},
		{script.Op{Name: "createAttachment", Link: "ALT/docs/1"}, 400, "not supported"},
		{script.Op{Name: "dropEverything", Link: "ALT/"}, 400, "not supported"},
	} {
		op, got = c.op, nil
		a.do("POST", execute, `[]`, key("a")).is(200)
		if got == nil || got.Status != c.status || !strings.Contains(got.Body, c.text) {
			t.Errorf("%s %s %s: %v, want %d %s", op.Name, op.Link, clip(string(op.Body)), got, c.status, c.text)
		}
	}
}

func TestReadIsNotModified(t *testing.T) {
	var etag string
	var rep script.Reply
	a := withScripts(t, program(func(r *fakeRun) error {
		var err *script.Error
		opt, _ := json.Marshal(map[string]string{"ifNoneMatch": etag})
		rep, err = r.host.Do(r.ctx, script.Op{Name: "readDocument", Link: r.docLink("1"), Options: opt})
		if err != nil {
			return err
		}
		return nil
	}))
	a.addProgram("sprocs", "p", "")
	etag = a.do("POST", "/dbs/db/colls/c/docs", `{"id":"1","pk":"a"}`, key("a")).is(201).h.Get("etag")
	a.do("POST", execute, `[]`, key("a")).is(200)
	if rep.Body != nil || !strings.Contains(string(rep.Options), `"notModified":true`) {
		t.Errorf("the answer is %s %s", rep.Body, rep.Options)
	}
}

// TestQueryPagesInProcedure deletes a partition page by page, by one continuation.
func TestQueryPagesInProcedure(t *testing.T) {
	pages := 0
	a := withScripts(t, program(func(r *fakeRun) error {
		opt := `{"pageSize":10}`
		for pages = 0; ; {
			rep, e := r.host.Do(r.ctx, script.Op{Name: "queryDocuments", Link: r.Links.Self,
				Query: []byte(`{"query":"SELECT VALUE c.id FROM c"}`), Options: []byte(opt)})
			if e != nil {
				return e
			}
			pages++
			var ids []string
			_ = json.Unmarshal(rep.Body, &ids)
			for _, id := range ids {
				if _, err := r.do("deleteDocument", r.docLink(id), "", ""); err != nil {
					return err
				}
			}
			var info struct{ Continuation string }
			_ = json.Unmarshal(rep.Options, &info)
			if info.Continuation == "" {
				return nil
			}
			next, _ := json.Marshal(info.Continuation)
			opt = `{"pageSize":10,"continuation":` + string(next) + `}`
		}
	}))
	a.addProgram("sprocs", "p", "")
	for i := range 35 {
		a.do("POST", "/dbs/db/colls/c/docs", fmt.Sprintf(`{"id":"i%d","pk":"a"}`, i), key("a")).is(201)
	}
	a.do("POST", execute, `[]`, key("a")).is(200)
	if pages != 4 {
		t.Errorf("%d pages", pages)
	}
	a.do("GET", "/dbs/db/colls/c/docs", "", key("a")).is(200).has(`"Documents":[]`)
}
