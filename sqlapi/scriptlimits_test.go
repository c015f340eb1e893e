package sqlapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// A program that exceeds its limits several times in succession is refused for a minute. A replaced one isn't.
func TestProgramsAreBlocked(t *testing.T) {
	var outcome error
	runs := 0
	a := withScripts(t, program(func(*fakeRun) error {
		runs++
		return outcome
	}))
	a.addProgram("sprocs", "p", "")
	clk := a.srv.clock
	exceeded := &script.Error{Status: 408, Body: "too long", Exceeded: true}
	run := func(err error, code int) {
		t.Helper()
		outcome = err
		a.do("POST", execute, `[]`, key("a")).is(code)
	}
	exceed := func(times int) {
		t.Helper()
		for range times {
			run(exceeded, 408)
		}
	}
	blocked := func() {
		t.Helper()
		before := runs
		a.do("POST", execute, `[]`, key("a")).is(403).has("blocked for execution because it has violated its allowed")
		if runs != before {
			t.Error("a blocked program has run")
		}
	}

	exceed(mostExceeded - 1)
	run(nil, 200) // the count begins again
	exceed(mostExceeded - 1)
	run(&script.Error{Status: 400, Body: "thrown"}, 400) // too
	exceed(mostExceeded)
	blocked()
	clk.Advance(blockedFor - time.Second)
	blocked()
	clk.Advance(time.Second)
	exceed(1)
	blocked()
	clk.Advance(blockedFor)
	run(nil, 200)
	exceed(mostExceeded)
	blocked()
	a.do("PUT", execute, `{"id":"p","body":"p"}`).is(200)
	run(nil, 200)
}

// Programs that were not run for an hour are forgotten.
func TestBlocksAreForgotten(t *testing.T) {
	var b scriptBlocks
	for i := range 3 {
		for n := range 10 {
			b.count(programID{num: uint32(n), version: uint64(i)}, testNow.Add(time.Duration(i)*forgotten/2))
		}
	}
	if len(b.programs) != 20 {
		t.Errorf("%d programs are remembered", len(b.programs))
	}
}

const logHeader = "x-ms-documentdb-script-log-results"

// The log comes with a failure too, and has what both triggers of a write have logged.
func TestLogOfPrograms(t *testing.T) {
	var fail error
	a := withScripts(t, fakeScripts{
		"p": func(r *fakeRun) error {
			r.res.Log = "from p"
			return fail
		},
		"pre":  func(r *fakeRun) error { r.res.Log, r.res.Request = "before", r.Request.Body; return nil },
		"post": func(r *fakeRun) error { r.res.Log = "after"; return fail },
	})
	a.addProgram("sprocs", "p", "")
	a.addProgram("triggers", "pre", `,"triggerType":"Pre","triggerOperation":"All"`)
	a.addProgram("triggers", "post", `,"triggerType":"Post","triggerOperation":"All"`)
	const on = "x-ms-documentdb-script-enable-logging: true"
	for _, tc := range []struct {
		fail     error
		code     int
		log, two string
	}{
		{nil, 200, "from%20p", "before%0Aafter"},
		{&script.Error{Status: 400, Body: "thrown", Log: "until then"}, 400, "until%20then", "before%0Auntil%20then"},
		{&script.Error{Status: 400, Body: "thrown"}, 400, "", "before"},
		{&script.Error{Status: 408, Body: "too long", Log: strings.Repeat("é", 10)}, 408,
			strings.Repeat("%C3%A9", 10), "before%0A" + strings.Repeat("%C3%A9", 10)},
	} {
		fail = tc.fail
		if got := a.do("POST", execute, `[]`, key("a"), on).is(tc.code).h.Get(logHeader); got != tc.log {
			t.Errorf("%v: the log is %q", tc.fail, got)
		}
		r := a.do("POST", "/dbs/db/colls/c/docs", fmt.Sprintf(`{"id":"%d","pk":"a"}`, tc.code), key("a"), on,
			"x-ms-documentdb-pre-trigger-include: pre", "x-ms-documentdb-post-trigger-include: post")
		if got := r.h.Get(logHeader); got != tc.two {
			t.Errorf("%v: the log of two triggers is %q", tc.fail, got)
		}
		if a.do("POST", execute, `[]`, key("a")).is(tc.code).h.Values(logHeader) != nil {
			t.Error("a log that nobody asked for")
		}
	}
}

// The callback of a write learns at once that another item has a unique value.
func TestUniqueKeysInProcedures(t *testing.T) {
	var codes []int
	a := withScripts(t, program(func(r *fakeRun) error {
		codes = nil
		for _, body := range []string{`{"id":"2","pk":"a","u":1}`, `{"id":"3","pk":"a","u":3}`,
			`{"id":"4","pk":"a","u":3}`} {
			_, err := r.host.Do(r.ctx, script.Op{Name: "createDocument", Link: r.Links.Self, Body: []byte(body)})
			if err == nil {
				err = &script.Error{}
			}
			codes = append(codes, err.Status)
		}
		return nil
	}))
	a.do("DELETE", "/dbs/db/colls/c", "").is(204)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},`+
		`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}}`).is(201)
	a.addProgram("sprocs", "p", "")
	a.do("POST", "/dbs/db/colls/c/docs", `{"id":"1","pk":"a","u":1}`, key("a")).is(201)
	a.do("POST", execute, `[]`, key("a")).is(200)
	if fmt.Sprint(codes) != "[409 0 409]" {
		t.Errorf("the callbacks got %v", codes)
	}
	a.do("GET", "/dbs/db/colls/c/docs/3", "", key("a")).is(200)
}

// The operations of a batch have no triggers, and the headers of a batch name none.
func TestBatchesRunNoTriggers(t *testing.T) {
	a := withScripts(t, program(func(*fakeRun) error {
		return &script.Error{Status: 400, Body: "a trigger has run"}
	}))
	a.addProgram("triggers", "p", `,"triggerType":"Pre","triggerOperation":"All"`)
	a.do("POST", "/dbs/db/colls/c/docs", `[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}}]`, key("a"),
		"x-ms-cosmos-is-batch-request: true", "x-ms-cosmos-batch-atomic: true",
		"x-ms-documentdb-pre-trigger-include: p", "x-ms-documentdb-post-trigger-include: none").
		is(200).has(`"statusCode":201`)
	a.do("GET", "/dbs/db/colls/c/docs/1", "", key("a")).is(200)
}
