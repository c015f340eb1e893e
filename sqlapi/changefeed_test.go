package sqlapi

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

const incremental = "A-IM: Incremental feed"

// drain reads a feed up to the 304, and returns the ids in order and the last etag.
func (a *api) drain(etag string, headers ...string) (ids []string, next string) {
	a.t.Helper()
	for range 100 {
		h := append([]string{incremental, "x-ms-max-item-count: 4"}, headers...)
		if etag != "" {
			h = append(h, "If-None-Match: "+etag)
		}
		r := a.do("GET", docs, "", h...)
		if etag = r.h.Get("etag"); etag == "" {
			a.t.Fatalf("%d without an etag", r.code)
		}
		if r.code == 304 {
			return ids, etag
		}
		for _, d := range r.is(200).json()["Documents"].([]any) {
			m := d.(map[string]any)
			if m["_lsn"].(float64) <= 0 {
				a.t.Fatalf("no _lsn in %v", m)
			}
			ids = append(ids, m["id"].(string))
		}
	}
	a.t.Fatal("the feed does not end")
	return nil, ""
}

func TestChangeFeed(t *testing.T) {
	a := withItems(t, 30)
	ids, etag := a.drain("")
	if len(ids) != 30 {
		t.Fatalf("%d of 30 items", len(ids))
	}
	if again, _ := a.drain(etag); len(again) != 0 {
		t.Fatalf("%v after the end", again)
	}
	a.do("PUT", docs+"/i4", `{"id":"i4","pk":"p1","n":-1}`, key("p1")).is(200)
	a.do("POST", docs, `{"id":"new","pk":"p0"}`, key("p0")).is(201)
	a.do("DELETE", docs+"/i5", "", key("p2")).is(204)
	ids, etag = a.drain(etag)
	if fmt.Sprint(ids) != "[i4 new]" && fmt.Sprint(ids) != "[new i4]" { // items of two partitions
		t.Fatalf("%v", ids)
	}
	if ids, _ = a.drain(etag); len(ids) != 0 {
		t.Fatalf("%v", ids)
	}
	if ids, _ = a.drain("", key("p1")); len(ids) != 10 {
		t.Errorf("%d items of one partition key", len(ids))
	}
	total := 0
	for _, id := range []string{"0", "1"} {
		got, _ := a.drain("", "x-ms-documentdb-partitionkeyrangeid: "+id)
		total += len(got)
	}
	if total != 30 {
		t.Errorf("%d items in both ranges", total)
	}
}

func TestChangeFeedStarts(t *testing.T) {
	a := withItems(t, 3)
	r := a.do("GET", docs, "", incremental, "If-None-Match: *").is(304)
	if n := r.h.Get("x-ms-item-count"); n != "0" { // .NET's iterator fails without it
		t.Errorf("%q items", n)
	}
	etag := r.h.Get("etag")
	a.srv.clock.Advance(10 * time.Second)
	now := a.srv.clock.Now()
	a.do("POST", docs, `{"id":"later","pk":"p0"}`, key("p0")).is(201)
	if ids, _ := a.drain(etag); fmt.Sprint(ids) != "[later]" {
		t.Errorf("from now: %v", ids)
	}
	for _, format := range []string{http.TimeFormat, "Mon, 02 Jan 2006 15:04:05 UTC", time.RFC3339} {
		for at, want := range map[time.Time]string{now: "[]", now.Add(-time.Second): "[later]"} { // it is exclusive
			if ids, _ := a.drain("", "If-Modified-Since: "+at.UTC().Format(format)); fmt.Sprint(ids) != want {
				t.Errorf("since %s: %v, want %s", at, ids, want)
			}
		}
	}
	a.do("GET", docs, "", incremental, `If-None-Match: "foreign"`).is(400)
	a.do("GET", docs, "", incremental, "If-Modified-Since: yesterday").is(400)
	a.do("GET", docs, "", incremental, "x-ms-documentdb-partitionkeyrangeid: 9").is(410).sub("1002")
	a.do("GET", docs, "", "A-IM: Full-Fidelity Feed").is(400).has("retentionDuration")
	a.do("GET", docs, "", "A-IM: Full-Fidelity Feed", "If-None-Match: *").is(400).has("retentionDuration")
	a.do("GET", docs, "", "A-IM: Other Feed").is(400).has("either")
}

// Java's newer change feed processor requests each change as an object that contains the item.
func TestChangeFeedWireFormat(t *testing.T) {
	a := withItems(t, 1)
	r := a.do("GET", docs, "", incremental, "x-ms-cosmos-changefeed-wire-format-version: 2021-09-15").is(200)
	change := r.json()["Documents"].([]any)[0].(map[string]any)
	item, about := change["current"].(map[string]any), change["metadata"].(map[string]any)
	if item["id"] != "i0" || item["_lsn"] != about["lsn"] || about["crts"] != item["_ts"] {
		t.Errorf("%s", r.body)
	}
}

// The etag of a feed is a number in quotes, like the service's: the Python client doesn't recognize other
// continuations, and would begin at the end. Within a physical partition it is its LSN.
func TestChangeFeedETagIsANumber(t *testing.T) {
	a := withItems(t, 30)
	number := regexp.MustCompile(`^"[0-9]+"$`)
	id := "x-ms-documentdb-partitionkeyrangeid: "
	part := []string{"x-ms-read-key-type: EffectivePartitionKeyRange", "x-ms-start-epk: 05", "x-ms-end-epk: 1A"}
	for name, scope := range map[string][]string{
		"range 0": {id + "0"}, "range 1": {id + "1"}, "part of a range": append(part, id+"0"),
		"key": {key("p1")}, "key with its range": {key("p1"), id + "0"},
		"key with another range": {key("p1"), id + "1"},
	} {
		for _, from := range []string{"x-none: 1", "If-None-Match: *", "If-Modified-Since: Mon, 02 Jan 2006 " +
			"15:04:05 GMT", `If-None-Match: "0"`} {
			r := a.do("GET", docs, "", append([]string{incremental, "x-ms-max-item-count: 2", from}, scope...)...)
			etag := r.h.Get("etag")
			if !number.MatchString(etag) || len(etag) > 4 {
				t.Errorf("%s, %s: %d with the etag %s", name, from, r.code, etag)
			}
		}
	}
	for _, most := range []string{"2", "100"} {
		r := a.do("GET", docs, "", incremental, "x-ms-max-item-count: "+most).is(200)
		if etag := r.h.Get("etag"); !number.MatchString(etag) {
			t.Errorf("the etag over partitions is %s", etag)
		}
	}
}

// A reader gets 304 only at the end of the feed: not before items that come after many others outside of its key, range
// or time, and not before what a page had no time to read.
func TestChangeFeedSaysNotModifiedAtTheEnd(t *testing.T) {
	a := withItems(t, 0)
	for i := range 300 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"many"}`, i), key("many")).is(201)
	}
	ct, err := a.srv.core.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	few := beside(ct, "many", true)
	a.srv.clock.Advance(5 * time.Minute)
	since := "If-Modified-Since: " + a.srv.clock.Now().Add(-time.Second).Format(http.TimeFormat)
	a.do("POST", docs, `{"id":"few","pk":"`+few+`"}`, key(few)).is(201)
	for _, scope := range []string{key(few), since} {
		a.do("GET", docs, "", incremental, "x-ms-max-item-count: 1", scope).is(200).has(`"id":"few"`).has(`"_count":1`)
	}
	a.do("POST", "/dbs/db/colls", `{"id":"short","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":60,`+
		`"indexingPolicy":{"indexingMode":"none","automatic":false}}`).is(201)
	short := "/dbs/db/colls/short/docs"
	for i := range 10_001 {
		a.do("POST", short, fmt.Sprintf(`{"id":"%d","pk":"a"}`, i), key("a")).is(201)
	}
	a.srv.clock.Advance(5 * time.Minute) // all items have expired, and their entries still exist
	a.do("POST", short, `{"id":"alive","pk":"a"}`, key("a")).is(201)
	r := a.do("GET", short, "", incremental).is(200).has(`"Documents":[],"_count":0`)
	r = a.do("GET", short, "", incremental, "If-None-Match: "+r.h.Get("etag")).is(200).has(`"alive"`)
	a.do("GET", short, "", incremental, "If-None-Match: "+r.h.Get("etag")).is(304)
}

// An etag of an earlier version, with an LSN for each slot, continues at its position.
func TestChangeFeedTakesOldETags(t *testing.T) {
	a := withItems(t, 30)
	rid, _ := base64.StdEncoding.DecodeString(a.do("GET", "/dbs/db/colls/c", "").is(200).json()["_rid"].(string))
	b := binary.AppendVarint(append([]byte{1}, rid...), 0)
	b = binary.AppendUvarint(b, 8)
	for slot := range uint64(8) {
		b = binary.AppendVarint(binary.AppendUvarint(b, slot+1), 27) // LSNs are 1, 2, .. here
	}
	b = binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
	ids, _ := a.drain(`"` + base64.RawURLEncoding.EncodeToString(b) + `"`)
	if slices.Sort(ids); fmt.Sprint(ids) != "[i27 i28 i29]" {
		t.Errorf("%v", ids)
	}
}

// No reply is much larger than 4 MiB, however many items are requested.
func TestChangeFeedReplyIsBounded(t *testing.T) {
	a := withItems(t, 0)
	text := strings.Repeat("x", 1<<20)
	for i := range 12 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"p%d","text":"%s"}`, i, i%6, text),
			key(fmt.Sprint("p", i%6))).is(201)
	}
	for _, scope := range []string{"x-none: 1", key("p1"), "x-ms-documentdb-partitionkeyrangeid: 0",
		"If-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT"} {
		if r := a.do("GET", docs, "", incremental, "x-ms-max-item-count: 100000", scope).is(200); len(r.body) > 6<<20 {
			t.Errorf("%s: %d bytes", scope, len(r.body))
		}
	}
}

// beside returns a partition key in the slot of another one, or in another slot.
func beside(ct *core.Container, pk string, same bool) string {
	slot := func(pk string) *core.Slot {
		n, _ := ct.SlotOf(core.PartitionKey{value.StringOf(pk)})
		return n
	}
	other := pk + "x"
	for (slot(other) == slot(pk)) != same {
		other += "x"
	}
	return other
}

// slowKV is an engine whose next write is delayed before it is visible.
type slowKV struct {
	kv.Engine
	hold chan chan bool
}

func (s *slowKV) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	select {
	case goOn := <-s.hold:
		goOn <- true
		<-goOn
	default:
	}
	return s.Engine.Write(ctx, b, pre)
}

// A write that is acknowledged after "now" was requested is in the feed from there, even if a write with a higher LSN
// was acknowledged earlier.
func TestChangeFeedFromNowLosesNothing(t *testing.T) {
	clk, eng := clock.Fake(testNow), &slowKV{Engine: memkv.New(), hold: make(chan chan bool, 1)}
	e, err := core.Open(context.Background(), eng, core.Options{Clock: clk, MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk})
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t, s}
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	a.do("POST", docs, `{"id":"old","pk":"p0"}`, key("p0")).is(201)
	ct, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	other := beside(ct, "p0", false) // in one slot, the second waits for the first
	goOn, done := make(chan bool), make(chan bool)
	eng.hold <- goOn
	go func() {
		defer close(done)
		a.do("POST", docs, `{"id":"slow","pk":"`+other+`"}`, key(other)).is(201)
	}()
	<-goOn
	a.do("POST", docs, `{"id":"fast","pk":"p0"}`, key("p0")).is(201)
	etag := a.do("GET", docs, "", incremental, "If-None-Match: *").is(304).h.Get("etag")
	goOn <- true
	<-done
	if ids, _ := a.drain(etag); fmt.Sprint(ids) != "[slow fast]" {
		t.Errorf("from now: %v", ids)
	}
}
