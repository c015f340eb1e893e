package tableapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/internal/rest"
)

// TestCharges: clients and observers get the charge of each request in request units.
func TestCharges(t *testing.T) {
	plain, clk := newServer(t, false)
	seen := &told{}
	s := New(plain.e, Options{Account: testAccount, Key: testKey, Clock: clk, Wall: clk, Observe: seen,
		Log: slog.New(slog.DiscardHandler)})
	do := func(method, target, body string, want int, header ...string) float64 {
		t.Helper()
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.RequestURI = target
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want {
			text, _ := io.ReadAll(w.Body)
			t.Fatalf("%s %s: got %d %s", method, target, w.Code, text)
		}
		charge, shown := seen.all[len(seen.all)-1].Charge, ""
		for name, v := range w.Header() { // its spelling is the server's
			if strings.EqualFold(name, "x-ms-request-charge") {
				shown = v[0]
			}
		}
		if want := string(rest.AppendCharge(nil, charge)); charge > 0 && shown != want {
			t.Errorf("%s %s: the header says %q, the observer %s", method, target, shown, want)
		}
		return charge
	}
	entity := func(i, size int) string {
		return fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d","text":%q}`, i, strings.Repeat("x", size))
	}
	part := func(body string) string {
		return "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
			"POST http://localhost/ttt HTTP/1.1\r\nContent-Type: application/json\r\n\r\n" + body + "\r\n"
	}
	group := func(parts ...string) string {
		return "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + strings.Join(parts, "") +
			"--c--\r\n--b--\r\n"
	}
	do("POST", "/Tables", `{"TableName":"ttt"}`, 201)
	for i := range 20 {
		do("POST", "/ttt", entity(i, 100), 201)
	}
	const mixed = "multipart/mixed; boundary=b"
	one := "/ttt(PartitionKey='p',RowKey='1')"
	for _, x := range []struct {
		name        string
		less, least float64 // an operation, and a lower bound of its charge
		more        float64 // an operation that must cost more
	}{
		{"insert", do("POST", "/ttt", entity(100, 100), 201), 4.9, do("POST", "/ttt", entity(101, 20_000), 201)},
		{"replace", do("PUT", one, entity(1, 100), 204), 4.9, do("PUT", one, entity(1, 20_000), 204)},
		{"read", do("GET", "/ttt(PartitionKey='p',RowKey='2')", "", 200), 1, do("GET", one, "", 200)},
		{"query", do("GET", "/ttt()?$filter=RowKey%20eq%20'2'", "", 200), 2, do("GET", "/ttt()", "", 200)},
		{"merge", do("PATCH", "/ttt(PartitionKey='p',RowKey='2')", `{"n":1}`, 204), 4.9,
			do("PATCH", one, `{"n":1}`, 204)},
		{"group", do("POST", "/$batch", group(part(entity(200, 1))), 202, "Content-Type", mixed), 4.9,
			do("POST", "/$batch", group(part(entity(201, 1)), part(entity(202, 1))), 202, "Content-Type", mixed)},
		{"delete", do("DELETE", "/ttt(PartitionKey='p',RowKey='2')", "", 204, "If-Match", "*"), 4.9,
			do("DELETE", one, "", 204, "If-Match", "*")},
	} {
		if x.less < x.least || x.more <= x.less {
			t.Errorf("%s: %.2f, what does more %.2f", x.name, x.less, x.more)
		}
	}
	if n := do("GET", "/ttt(PartitionKey='p',RowKey='none')", "", 404); n != 1 {
		t.Errorf("what isn't there: %.2f", n)
	}
}

// A page of entities counts in the budget of the process. While the budget is used up, a large page is refused.
func TestPagesCountInTheBudget(t *testing.T) {
	clk := clock.Fake(time.Date(2024, 3, 4, 5, 6, 7, 0, time.UTC))
	const limit = 4 << 20
	b := budget.New(limit, 0)
	e, err := core.Open(context.Background(), memkv.New(), core.Options{Clock: clk, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := New(e, Options{Account: testAccount, Key: testKey, Clock: clk, Wall: clk})
	do(s, "POST", "/Tables", `{"TableName":"data"}`)
	for i := range 10 {
		w := do(s, "POST", "/data", fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d","text":%q}`, i,
			strings.Repeat("x", 30<<10)))
		if w.Code != 201 {
			t.Fatal(w.Body)
		}
	}
	held := b.Open("test")
	if err := held.Grow(limit - 100<<10); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]int{
		"/data": 429, "/data?$top=1": 200, "/data(PartitionKey='p',RowKey='1')": 200} {
		if w := do(s, "GET", target, ""); w.Code != want || want == 429 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v", target, w.Code, w.Header())
		}
	}
	held.Close()
	if w := do(s, "GET", "/data", ""); w.Code != 200 || b.Used() != 0 {
		t.Errorf("%d, %d bytes are still held", w.Code, b.Used())
	}
}
