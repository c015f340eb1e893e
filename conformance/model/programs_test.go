package model

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// library is a server with a container of authors and their books, partitioned by author. azcosmos has no methods for
// programs, so they are stored and executed by REST.
type library struct {
	*azcosmos.ContainerClient
	t   *testing.T
	url string
}

func newLibrary(t *testing.T) *library {
	cfg := server.Ephemeral()
	cfg.Auth = false
	return startLibrary(t, cfg)
}

func startLibrary(t *testing.T, cfg server.Config) *library {
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s := harness.StartWith(t, cfg)
	db := s.Database(t)
	c := harness.Container(t, db, "library", 0, "/author")
	create(t, c, "author", `{"id":"a1","author":"a1","name":"Thomas Andersen","countOfBooks":3}`)
	return &library{c, t, "http://" + s.Addr(server.NoSQL) + "/dbs/" + db.ID() + "/colls/library/"}
}

// post sends a request and returns the reply's status, sub-status and body.
func (l *library) post(path, body, author string) (code int, sub, text string) {
	l.t.Helper()
	r := l.send("POST", path, body, author)
	return r.code, r.h.Get("x-ms-substatus"), r.body
}

// answer is the reply to a request.
type answer struct {
	code int
	h    http.Header
	body string
}

// send sends a request. headers are names and values.
func (l *library) send(method, path, body, author string, headers ...string) answer {
	l.t.Helper()
	r, err := http.NewRequest(method, l.url+path, strings.NewReader(body))
	ok(l.t, err)
	if author != "" {
		r.Header.Set("x-ms-documentdb-partitionkey", fmt.Sprintf("[%q]", author))
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	ok(l.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ok(l.t, err)
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// program stores a program. more are further members of its definition.
func (l *library) program(segment, id, text, more string) {
	l.t.Helper()
	quoted, err := json.Marshal(text)
	ok(l.t, err)
	if code, _, body := l.post(segment, fmt.Sprintf(`{"id":%q,"body":%s%s}`, id, quoted, more), ""); code != 201 {
		l.t.Fatalf("%d %s", code, body)
	}
}

// count returns the author's countOfBooks and the number of books.
func (l *library) count() (counted, books int) {
	l.t.Helper()
	r, err := l.ReadItem(bg, str("a1"), "a1", nil)
	ok(l.t, err)
	counted = int(object(l.t, r.Value)["countOfBooks"].(float64))
	rows := harness.Query(l.t, l.ContainerClient, str("a1"), "SELECT VALUE COUNT(1) FROM c WHERE c.type = 'book'")
	ok(l.t, json.Unmarshal([]byte(rows[0]), &books))
	return counted, books
}

// addBook inserts a book and raises its author's countOfBooks. If fail is given, it fails after so many steps.
const addBook = `function addBook(book, fail) {
	var collection = getContext().getCollection();
	var link = collection.getAltLink();
	function step(n) {
		if (fail === n) throw new Error(4711, "failed after step " + n);
	}
	step(0);
	book.type = "book";
	var accepted = collection.createDocument(link, book, function (err, made) {
		if (err) throw new Error(err.number, err.body);
		step(1);
		var query = {query: "SELECT * FROM c WHERE c.id = @id", parameters: [{name: "@id", value: book.author}]};
		collection.queryDocuments(link, query, function (err, authors) {
			if (err) throw err;
			if (authors.length !== 1) throw new Error("no such author: " + book.author);
			step(2);
			var author = authors[0];
			author.countOfBooks++;
			collection.replaceDocument(author._self, author, {etag: author._etag}, function (err, replaced) {
				if (err) throw err;
				step(3);
				getContext().getResponse().setBody({book: made, countOfBooks: replaced.countOfBooks});
			});
		});
	});
	if (!accepted) throw new Error("not accepted");
}`

// P12, M5: a stored procedure inserts a book and raises its author's countOfBooks. A failure at any point leaves
// neither.
func TestM5Procedure(t *testing.T) {
	l := newLibrary(t)
	l.program("sprocs", "addBook", addBook, "")
	for fail := range 4 {
		code, sub, body := l.post("sprocs/addBook", fmt.Sprintf(`[{"id":"b4","author":"a1"},%d]`, fail), "a1")
		if code != 400 || sub != "4711" || !strings.Contains(body, fmt.Sprintf("failed after step %d", fail)) {
			t.Errorf("a failure after step %d: %d/%s %s", fail, code, sub, body)
		}
		if counted, books := l.count(); counted != 3 || books != 0 {
			t.Errorf("a failure after step %d leaves %d books and a count of %d", fail, books, counted)
		}
	}
	code, _, body := l.post("sprocs/addBook", `[{"id":"b4","author":"a1"}]`, "a1")
	if code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	var reply struct {
		Book         json.RawMessage
		CountOfBooks int
	}
	ok(t, json.Unmarshal([]byte(body), &reply))
	book, err := l.ReadItem(bg, str("a1"), "b4", nil)
	ok(t, err)
	if reply.CountOfBooks != 4 || fmt.Sprint(object(t, reply.Book)) != fmt.Sprint(object(t, book.Value)) {
		t.Errorf("the reply is %s, the book %s", body, book.Value)
	}
	if code, sub, _ := l.post("sprocs/addBook", `[{"id":"b4","author":"a1"}]`, "a1"); code != 400 || sub != "409" {
		t.Errorf("the same book again: %d/%s", code, sub)
	}
	if code, _, _ := l.post("sprocs/addBook", `[{"id":"b5","author":"a2"}]`, "a1"); code != 400 {
		t.Errorf("a book of another partition: %d", code)
	}
	if counted, books := l.count(); counted != 4 || books != 1 {
		t.Errorf("%d books and a count of %d", books, counted)
	}
}

// M5: 50 procedures at once add up.
func TestM5FiftyAtOnce(t *testing.T) {
	l := newLibrary(t)
	l.program("sprocs", "addBook", addBook, "")
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			code, sub, body := l.post("sprocs/addBook", fmt.Sprintf(`[{"id":"n%d","author":"a1"}]`, i), "a1")
			if code != 200 {
				t.Errorf("%d/%s %s", code, sub, body)
			}
		})
	}
	wg.Wait()
	if counted, books := l.count(); counted != 53 || books != 50 {
		t.Errorf("%d books and a count of %d", books, counted)
	}
}

// P12, M3: a pre-trigger refuses a book whose publisher doesn't exist in its partition.
func TestM3PreTrigger(t *testing.T) {
	l := newLibrary(t)
	l.program("triggers", "checkPublisher", `function checkPublisher() {
		var collection = getContext().getCollection(), request = getContext().getRequest();
		var book = request.getBody();
		book.checked = request.getOperationType();
		request.setBody(book);
		var link = collection.getAltLink() + "/docs/" + book.publisher;
		var accepted = collection.readDocument(link, function (err, publisher) {
			if (err) throw new Error(err.number, "no publisher " + book.publisher);
		});
		if (!accepted) throw new Error("not accepted");
	}`, `,"triggerType":"Pre","triggerOperation":"All"`)
	create(t, l.ContainerClient, "author", `{"id":"mspress","author":"a1"}`)
	o := &azcosmos.ItemOptions{PreTriggers: []string{"checkPublisher"}}
	_, err := l.CreateItem(bg, str("a1"), []byte(`{"id":"1","author":"a1","publisher":"none"}`), o)
	if re := refused(t, err, 400); re.RawResponse.Header.Get("x-ms-substatus") != "404" {
		t.Errorf("%v", err)
	}
	_, err = l.ReadItem(bg, str("a1"), "1", nil)
	refused(t, err, 404)
	_, err = l.CreateItem(bg, str("a1"), []byte(`{"id":"1","author":"a1","publisher":"mspress"}`), o)
	ok(t, err)
	_, err = l.UpsertItem(bg, str("a1"), []byte(`{"id":"1","author":"a1","publisher":"none"}`), o)
	refused(t, err, 400)
	r, err := l.ReadItem(bg, str("a1"), "1", nil)
	ok(t, err)
	has(t, r.Value, `{"publisher":"mspress","checked":"Create"}`)
	_, err = l.ReplaceItem(bg, str("a1"), "1", []byte(`{"id":"1","author":"a1","publisher":"mspress"}`), o)
	ok(t, err)
	_, err = l.ReadItem(bg, str("a1"), "1", nil)
	ok(t, err)
}

// P12, M5: a post-trigger keeps countOfBooks, in the transaction of the write.
func TestM5PostTrigger(t *testing.T) {
	l := newLibrary(t)
	l.program("triggers", "countBook", `function countBook() {
		var collection = getContext().getCollection(), book = getContext().getResponse().getBody();
		var query = {query: "SELECT * FROM c WHERE c.id = @id", parameters: [{name: "@id", value: book.author}]};
		collection.queryDocuments(collection.getSelfLink(), query, function (err, authors) {
			if (err) throw err;
			if (book.id === "bad") throw new Error("a bad book");
			authors[0].countOfBooks++;
			collection.replaceDocument(authors[0]._self, authors[0], function (err) {
				if (err) throw err;
				if (book.id === "late") throw new Error("a late error");
			});
		});
	}`, `,"triggerType":"Post","triggerOperation":"Create"`)
	o := &azcosmos.ItemOptions{PostTriggers: []string{"countBook"}}
	add := func(id string) error {
		_, err := l.CreateItem(bg, str("a1"), fmt.Appendf(nil, `{"id":%q,"author":"a1","type":"book"}`, id), o)
		return err
	}
	ok(t, add("b4"))
	refused(t, add("bad"), 400)
	refused(t, add("late"), 400)
	refused(t, add("b4"), 409)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if err := add(fmt.Sprintf("n%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if counted, books := l.count(); counted != 14 || books != 11 {
		t.Errorf("%d books and a count of %d", books, counted)
	}
}

// P12: programs that exhaust their time, memory or stack, throw, or don't compile are stopped and leave nothing. Other
// requests are served meanwhile.
func TestP12HostilePrograms(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Auth, cfg.ScriptTime, cfg.ScriptMemory = false, 2*time.Second, 128
	l := startLibrary(t, cfg)
	first := `getContext().getCollection().createDocument(getContext().getCollection().getSelfLink(), ` +
		`{id: "left", author: "a1"}, function () { `
	for name, c := range map[string]struct {
		text  string
		codes []int
	}{
		"endless": {`function () { ` + first + `for (;;) {} }); }`, []int{408}},
		"memory": {`function () { ` + first + `var a = []; for (;;) a.push(new Array(100000).join("x") + a.length); ` +
			`}); }`, []int{400, 403, 408}},
		"recursion": {`function () { ` + first + `(function f() { return f() + 1; })(); }); }`, []int{400}},
		"throws":    {`function () { ` + first + `null.x; }); }`, []int{400}},
		"syntax":    {`function () { `, []int{400}},
		"body": {`function () { ` + first + `getContext().getResponse().setBody("x".repeat(9000000)); }); }`,
			[]int{400, 413}},
	} {
		t.Run(name, func(t *testing.T) {
			l.program("sprocs", name, c.text, "")
			var code int
			var body string
			done := make(chan bool)
			go func() {
				defer close(done)
				code, _, body = l.post("sprocs/"+name, "", "a1")
			}()
			for waiting := true; waiting; {
				_, err := l.ReadItem(bg, str("a1"), "a1", nil)
				ok(t, err)
				select {
				case <-done:
					waiting = false
				default:
				}
			}
			if !slices.Contains(c.codes, code) {
				t.Errorf("%d %s, want %v", code, body, c.codes)
			}
			_, err := l.ReadItem(bg, str("a1"), "left", nil)
			refused(t, err, 404)
		})
	}
}

// A query may use the container's functions, in each of its clauses.
func TestFunctionsInQueries(t *testing.T) {
	l := newLibrary(t)
	l.program("udfs", "tax", `function (income) {
		if (income === undefined) throw new Error("no input");
		return income < 1000 ? income * 0.1 : income * 0.2;
	}`, "")
	l.program("udfs", "nothing", `function () {}`, "")
	for i := range 5 {
		create(t, l.ContainerClient, "author", fmt.Sprintf(`{"id":"%d","author":"b","income":%d}`, i, i*500))
	}
	query := func(q, want string) {
		t.Helper()
		same(t, harness.Query(t, l.ContainerClient, str("b"), q), want)
	}
	query("SELECT VALUE udf.tax(c.income) FROM c", `[0,50,200,300,400]`)
	query("SELECT VALUE c.id FROM c WHERE udf.tax(c.income) > 100 ORDER BY c.id", `["2","3","4"]`)
	query("SELECT VALUE SUM(udf.tax(c.income)) FROM c", `[950]`)
	query("SELECT VALUE udf.nothing() FROM c", `[]`)
	for _, q := range []string{"SELECT VALUE udf.none(1) FROM c", "SELECT VALUE udf.tax(c.none) FROM c"} {
		_, err := l.NewQueryItemsPager(q, str("b"), nil).NextPage(bg)
		refused(t, err, 400)
	}
	l.program("sprocs", "inside", `function () {
		var c = getContext().getCollection();
		c.createDocument(c.getSelfLink(), {id: "9", author: "b", income: 10}, function (err) {
			if (err) throw err;
			c.queryDocuments(c.getSelfLink(), "SELECT VALUE udf.tax(c.income) FROM c WHERE c.income > 0",
				function (err, rows) {
					if (err) throw err;
					getContext().getResponse().setBody(rows);
				});
		});
	}`, "")
	if code, _, body := l.post("sprocs/inside", "", "b"); code != 200 || body != "[50,200,300,400,1]" {
		t.Errorf("a query in a procedure: %d %s", code, body)
	}
}

// P12: programs that work with promises, getters, links and callbacks in ways that no documentation shows either end
// with an error that leaves nothing, or do all that they have begun.
func TestP12OddPrograms(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Auth, cfg.ScriptTime = false, 2*time.Second
	l := startLibrary(t, cfg)
	const collection = `var c = getContext().getCollection(), link = c.getSelfLink(); `
	const left = `c.createDocument(link, {id: "left", author: "a1"}, function () {}); `
	for name, x := range map[string]struct {
		text string // behind collection and left; a whole function where it begins with one
		code int
		sub  string
		says string
	}{
		"async throw": {`async function f() { ` + collection + left + `await null; throw new Error("late"); }`, 400, "",
			"late"},
		"endless chain": {`function f() { return Promise.resolve().then(f); } return f();`, 408, "", "ran longer"},
		"getter": {`c.createDocument(link, {id: "x", author: "a1", get y() { throw new Error("boo"); }});`, 400, "",
			"boo"},
		"endless getter": {`c.createDocument(link, {id: "x", author: "a1", y: {toJSON: function () { for (;;); }}});`,
			408, "", "ran longer"},
		"cycle":         {`var a = {id: "x", author: "a1"}; a.a = a; c.createDocument(link, a);`, 400, "", "circular"},
		"cycle in body": {`var a = {}; a.a = a; getContext().getResponse().setBody(a);`, 400, "", "circular"},
		"other container": {`c.createDocument("dbs/db/colls/other", {id: "x", author: "a1"});`, 400, "",
			"outside current collection"},
		"other key":        {`c.createDocument(link, {id: "x", author: "a2"});`, 400, "", "partition keys other than"},
		"throws undefined": {`throw undefined;`, 400, "", ""},
		"throws a number":  {`throw 5;`, 400, "", "5"},
		"number":           {`throw new Error(4711, "mine");`, 400, "4711", "mine"},
		"caught too early": {`try { c.createDocument(link, {id: "x", author: "a1"}, function () {
			throw new Error("in the callback"); }); } catch (e) {}`, 400, "", "in the callback"},
		"no function": {`setTimeout(function () {}, 1);`, 400, "", "setTimeout is not defined"},
		"nested": {`var a = {id: "x", author: "a1"}, b = a; for (var i = 0; i < 1000; i++) b = b.x = {};
			c.createDocument(link, a);`, 400, "", "nested deeper"},
		"big number": {`getContext().getResponse().setBody(10n);`, 400, "", "BigInt"},
		"large body": {`getContext().getResponse().setBody("x".repeat(5000000));`, 400, "413", "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			text := x.text
			if !strings.HasPrefix(text, "async function") {
				text = "function () { " + collection + left + text + " }"
			}
			l.program("sprocs", name, text, "")
			code, sub, body := l.post("sprocs/"+url.PathEscape(name), "", "a1")
			if code != x.code || x.sub != "" && sub != x.sub || !strings.Contains(body, x.says) {
				t.Errorf("%d/%s %s, want %d/%s with %q", code, sub, body, x.code, x.sub, x.says)
			}
			_, err := l.ReadItem(bg, str("a1"), "left", nil)
			refused(t, err, 404)
		})
	}
	// What a program begins in a promise or in a callback of a callback belongs to its transaction.
	l.program("sprocs", "later", `async function later() { `+collection+`
		await null;
		c.createDocument(link, {id: "one", author: "a1"}, function () {
			Promise.resolve().then(function () { c.createDocument(link, {id: "two", author: "a1"}); });
		});
	}`, "")
	if code, _, body := l.post("sprocs/later", "", "a1"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	for _, id := range []string{"one", "two"} {
		_, err := l.ReadItem(bg, str("a1"), id, nil)
		ok(t, err)
	}
}

// P12: a program that inserts until it isn't accepted any more has inserted what was accepted.
func TestP12BackPressure(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Auth, cfg.ScriptTime = false, 5*time.Minute
	l := startLibrary(t, cfg)
	l.program("sprocs", "fill", `function fill() {
		var c = getContext().getCollection(), link = c.getSelfLink(), n = 0;
		function next() {
			var accepted = c.createDocument(link, {id: "n" + n, author: "a2"}, function (err) {
				if (err) throw new Error(err.number, err.body);
				n++;
				next();
			});
			if (!accepted) getContext().getResponse().setBody(n);
		}
		next();
	}`, "")
	code, sub, body := l.post("sprocs/fill", "", "a2")
	if code != 200 || body != "65000" {
		t.Fatalf("%d/%s %.300s", code, sub, body)
	}
	same(t, harness.Query(t, l.ContainerClient, str("a2"), "SELECT VALUE COUNT(1) FROM c"), "[65000]")
}
