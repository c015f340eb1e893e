package sqlapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/budget"
)

// Replies count in the memory budget until they are sent. When the budget is used up, large ones are refused, and in a
// transaction before anything is written. Point reads always have memory.
func TestRepliesCountInTheBudget(t *testing.T) {
	const limit = 8 << 20
	b := budget.New(limit, 0)
	a, _ := limited(t, Options{}, b)
	text := strings.Repeat("x", 300<<10)
	for i := range 3 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"big%d","pk":"b","text":"%s"}`, i, text), key("b")).is(201)
	}
	const query, plain = "x-ms-documentdb-isquery: true", "x-ms-cosmos-is-batch-request: true"
	const atomic = "x-ms-cosmos-batch-atomic: true"
	read := `{"operationType":"Read","id":"big0","partitionKey":"[\"b\"]"}`
	patch := `{"operationType":"Patch","id":"big1","partitionKey":"[\"b\"]",` +
		`"resourceBody":{"operations":[{"op":"incr","path":"/n","value":1}]}}`
	for _, x := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int    // when the budget is used up
		has                      string // in the body then
	}{
		{"read", "GET", docs + "/big0", "", []string{key("b")}, 200, `"big0"`},
		{"small query", "POST", docs, `{"query":"SELECT * FROM c"}`, []string{query, key("a")}, 200, `"_count":20`},
		{"query", "POST", docs, `{"query":"SELECT * FROM c"}`, []string{query, key("b")}, 429, ""},
		{"query of groups", "POST", docs, `{"query":"SELECT c.text FROM c GROUP BY c.text"}`,
			[]string{query, key("b")}, 429, ""},
		{"read feed", "GET", docs, "", nil, 429, ""},
		{"change feed", "GET", docs, "", []string{"A-IM: Incremental feed"}, 429, ""},
		{"batch of reads", "POST", docs, "[" + read + "]", []string{plain, atomic, key("b")}, 429, ""},
		{"batch of writes", "POST", docs, "[" + patch + "]", []string{plain, atomic, key("b")}, 429, ""},
		{"bulk of reads", "POST", docs, "[" + read + "]", []string{plain}, 207, `"statusCode":429`},
		{"bulk of writes", "POST", docs, "[" + patch + "]", []string{plain}, 200, `"statusCode":200`},
	} {
		t.Run(x.name, func(t *testing.T) {
			a.do(x.method, x.path, x.body, x.headers...).is(200)
			before := a.do("GET", docs+"/big1", "", key("b")).h.Get("etag")
			// Memory for the body of the request, not for its reply.
			other := b.Open("test")
			if err := other.Grow(limit - 200<<10); err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			r := a.do(x.method, x.path, x.body, x.headers...).is(x.code).has(x.has)
			if x.code == 429 && r.h.Get("x-ms-retry-after-ms") == "" {
				t.Error("no time to try again")
			}
			if strings.Contains(r.body, text) && x.name != "read" {
				t.Error("a large reply")
			}
			after := a.do("GET", docs+"/big1", "", key("b")).h.Get("etag")
			if (before != after) != (x.name == "bulk of writes") {
				t.Errorf("the item: %s, then %s", before, after)
			}
		})
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are still held", b.Used())
	}
}

// TestBulkThatIsShortOfMemory: a write whose document has no memory in the reply is answered without it, a replace that
// changes the id too. The operations behind it are run.
func TestBulkThatIsShortOfMemory(t *testing.T) {
	const limit = 8 << 20
	b := budget.New(limit, 0)
	a, _ := limited(t, Options{}, b)
	for _, id := range []string{"one", "two"} {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%s","pk":"b"}`, id), key("b")).is(201)
	}
	other := b.Open("test")
	if err := other.Grow(limit - 400<<10); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	text := strings.Repeat("x", 180<<10)
	r := a.do("POST", docs, `[{"operationType":"Replace","id":"one","partitionKey":"[\"b\"]","resourceBody":`+
		`{"id":"other","pk":"b","text":"`+text+`"}},{"operationType":"Delete","id":"two","partitionKey":"[\"b\"]"},`+
		`{"operationType":"Delete","id":"none","partitionKey":"[\"b\"]"}]`,
		"x-ms-cosmos-is-batch-request: true").is(207).has(`[{"statusCode":200,`).has(`{"statusCode":204,`).has(
		`{"statusCode":404,`)
	if strings.Contains(r.body, text) {
		t.Error("a large reply")
	}
	a.do("GET", docs+"/other", "", key("b")).is(200)
	a.do("GET", docs+"/two", "", key("b")).is(404)
}

// slow is a client that reads nothing until it is released.
type slow struct {
	*httptest.ResponseRecorder
	begun, read chan bool
}

func (s *slow) Write(p []byte) (int, error) {
	s.begun <- true
	<-s.read
	return s.ResponseRecorder.Write(p)
}

// The part of a reply that a slow client hasn't read counts.
func TestARepliesMemoryIsHeldUntilItIsSent(t *testing.T) {
	b := budget.New(8<<20, 0)
	a, _ := limited(t, Options{}, b)
	text := strings.Repeat("x", 300<<10)
	a.do("POST", docs, fmt.Sprintf(`{"id":"big","pk":"b","text":"%s"}`, text), key("b")).is(201)
	w := &slow{httptest.NewRecorder(), make(chan bool, 8), make(chan bool)}
	done := make(chan bool)
	go func() {
		a.srv.ServeHTTP(w, a.request("GET", docs, ""))
		close(done)
	}()
	<-w.begun
	if n := b.Used(); n < 200<<10 {
		t.Errorf("%d bytes are held", n)
	}
	close(w.read)
	<-done
	if b.Used() != 0 || w.Code != http.StatusOK {
		t.Errorf("%d bytes are held after %d", b.Used(), w.Code)
	}
}
