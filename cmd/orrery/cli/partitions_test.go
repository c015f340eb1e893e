package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
)

// served starts a server with containers of good and bad partition keys.
func served(t *testing.T) *server.Server {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Key = "c2VjcmV0c2VjcmV0" // not the public one
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	ctx := context.Background()
	if _, err := s.Engine().EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	for id, key := range map[string]func(i int) any{
		"even": func(i int) any { return i },
		"few":  func(i int) any { return i % 3 },
		"hot":  func(i int) any { return max(0, i-300) },
		"tiny": func(i int) any { return i },
	} {
		c, err := s.Engine().CreateContainer(ctx, "db", core.ContainerSpec{ID: id,
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}, Throughput: core.Throughput{Manual: 20000}})
		if err != nil {
			t.Fatal(err)
		}
		n := 400
		if id == "tiny" {
			n = 10
		}
		for i := range n {
			text := fmt.Appendf(nil, `{"id":"%d","pk":%v}`, i, key(i))
			d, err := doc.FromJSON(nil, text, doc.JSONOptions{Names: doc.NoSQL})
			if err == nil {
				_, err = c.Write(ctx, core.Write{Kind: core.Create, Doc: d})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// TestPartitionsCommand: the command draws the partitions and says whether the key is good. It splits and merges them.
func TestPartitionsCommand(t *testing.T) {
	s := served(t)
	admin := "http://" + s.Addr(server.Admin)
	t.Setenv("ORRERY_TEST_KEY", s.Key())
	orrery := func(want int, args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		args = append(append([]string{"partitions"}, args...), "--endpoint", admin, "--key", "env:ORRERY_TEST_KEY")
		if code := run(args, &out, &errOut); code != want {
			t.Fatalf("%v: exit code %d: %s", args, code, &errOut)
		}
		return out.String() + errOut.String()
	}
	for id, want := range map[string]string{
		"even": "spreads the data evenly",
		"few":  "has only 3 values for 2 physical partitions",
		"hot":  "the key [0] has 75 % of all data",
		"tiny": "too few items (10)",
	} {
		text := orrery(0, "db/"+id)
		for _, part := range []string{want, "db/" + id + ": 2 physical partitions, 20000 RU/s", "     0 |",
			"     1 |", "█", " RU/s\n", " items ["} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in\n%s", id, part, text)
			}
		}
	}
	if text := orrery(0, "db/hot"); !strings.Contains(text, "301 items [0]\n") {
		t.Errorf("the largest key isn't there: %s", text)
	}
	var r server.PartitionsReport
	if err := json.Unmarshal([]byte(orrery(0, "split", "db/even", "1", "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Partitions) != 3 || r.Partitions[1].ID != "2" || r.Partitions[2].Parents[0] != "1" || r.Keys != 400 ||
		!r.AllKeys || len(r.Heaviest) != 5 {
		t.Errorf("after the split %+v", r)
	}
	if p := r.Partitions[0]; p.Total <= 0 || p.Share < 6666 || p.Share > 6667 {
		t.Errorf("%v RU, at most %v per second", p.Total, p.Share)
	}
	if text := orrery(0, "merge", "db/even", "0"); !strings.Contains(text, "2 physical partitions") {
		t.Errorf("after the merge %s", text)
	}
	for _, x := range [][]string{
		{"There is no physical partition \"1\"", "split", "db/even", "1"},
		{"There is no physical partition \"x\"", "merge", "db/even", "x"},
		{"No physical partition follows", "merge", "db/even", "3"},
		{"container \"none\"", "db/none"}, {"want DATABASE/CONTAINER", "db"},
	} {
		if text := orrery(1, x[1:]...); !strings.Contains(text, x[0]) {
			t.Errorf("%v: %s", x[1:], text)
		}
	}
}

// Each physical partition has bars for its storage, its items and its request units, in a line of at most 100 columns.
func TestPartitionBars(t *testing.T) {
	r := &server.PartitionsReport{Database: "db", Container: "c", Advice: "Good."}
	for i, p := range []struct {
		bytes, items int64
		ru           float64
	}{{1023 << 30, 999_999_999, 999_999.9}, {1023 << 29, 0, 250_000}, {0, 500_000_000, 0.1}} {
		r.Partitions = append(r.Partitions, server.PhysicalReport{RU: p.ru,
			PartitionStatus: server.PartitionStatus{ID: strconv.Itoa(i), Items: p.items, Bytes: p.bytes}})
	}
	var out bytes.Buffer
	if err := writePartitions(&out, r); err != nil {
		t.Fatal(err)
	}
	want := "db/c: 3 physical partitions\n" +
		"     0 |██████████████| 1023.0 GiB |██████████████| 999999999 items |██████████████| 999999.9 RU/s\n" +
		"     1 |███████       |  511.5 GiB |              |         0 items |███           | 250000.0 RU/s\n" +
		"     2 |              |          0 |███████       | 500000000 items |              |      0.1 RU/s\nGood.\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("more than 100 columns: %s", line)
		}
	}
}

// perSecond matches what depends on the time: the request units and their bar.
var perSecond = regexp.MustCompile(` \|[█ ]*\| +[0-9.]+ RU/s\n`)

// TestPartitionsGuide: docs/partitioning.md shows what the command prints for a key with three values.
func TestPartitionsGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/partitioning.md")
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(text), "```shell\norrery partitions shop/orders\n```\n\n```text\n")
	want, _, _ = strings.Cut(want, "```\n")
	s := served(t)
	ctx := context.Background()
	if _, err := s.Engine().EnsureDatabase(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	c, err := s.Engine().CreateContainer(ctx, "shop", core.ContainerSpec{ID: "orders",
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/country"}}, Throughput: core.Throughput{Manual: 20000}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, k := range []struct {
		country string
		orders  int
	}{{"NZ", 400}, {"AU", 200}, {"FJ", 160}} {
		for range k.orders {
			n++
			text := fmt.Appendf(nil, `{"id":"%06d","country":%q,"total":99.5,"status":"paid"}`, n, k.country)
			d, err := doc.FromJSON(nil, text, doc.JSONOptions{Names: doc.NoSQL})
			if err == nil {
				_, err = c.Write(ctx, core.Write{Kind: core.Create, Doc: d})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	var out, errOut bytes.Buffer
	t.Setenv("ORRERY_TEST_KEY", s.Key())
	args := []string{"partitions", "shop/orders", "--endpoint", "http://" + s.Addr(server.Admin), "--key",
		"env:ORRERY_TEST_KEY"}
	if code := run(args, &out, &errOut); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	mask := func(s string) string { return perSecond.ReplaceAllString(s, " RU/s\n") }
	if mask(out.String()) != mask(want) {
		t.Errorf("the command prints\n%s\nthe guide has\n%s", &out, want)
	}
}

// The partitions on the admin port need the account key: for the report, which has partition keys, and for changes.
func TestPartitionsNeedTheKey(t *testing.T) {
	s := served(t)
	at := "http://" + s.Addr(server.Admin) + server.PartitionsPath
	change := `{"database":"db","container":"even","partition":"0","do":"split"}`
	for _, x := range []struct {
		method, body, key string
		want              int
	}{
		{"GET", "", "", 401}, {"GET", "", "wrong", 401}, {"GET", "", s.Key(), 200}, {"POST", change, "", 401},
		{"POST", change, "wrong", 401}, {"POST", "{}", s.Key(), 400}, {"POST", change, s.Key(), 200},
		{"POST", change, s.Key(), 404},
	} {
		req, err := http.NewRequest(x.method, at+"?database=db&container=even", strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		if x.key != "" {
			req.Header.Set("Authorization", "Bearer "+x.key)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != x.want {
			t.Errorf("%s %s with key %q: %d, want %d", x.method, x.body, x.key, res.StatusCode, x.want)
		}
	}
}

// The command names the processes that do background work for the container, and the writes that wait, if several
// processes share the store.
func TestPartitionsOfSeveralProcesses(t *testing.T) {
	var out bytes.Buffer
	r := &server.PartitionsReport{Database: "db", Container: "c", Throughput: 400, Waiting: 3, Advice: "Good.",
		Leases: []server.WorkReport{
			{Lease: core.Lease{Work: "layout", Process: "9f86d081884c7d65"}, Name: "host-b/71"},
			{Lease: core.Lease{Work: "expiry", Process: "0a1b2c3d4e5f6071", Mine: true}}}}
	if err := writePartitions(&out, r); err != nil {
		t.Fatal(err)
	}
	want := "db/c: 0 physical partitions, 400 RU/s, 3 writes wait at this process\n" +
		"layout: host-b/71 (9f86d081884c7d65)\nexpiry: 0a1b2c3d4e5f6071, this process\nGood.\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
}
