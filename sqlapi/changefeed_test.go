package sqlapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

const incremental = "A-IM: Incremental feed"

// drain reads a feed to its 304 and returns the ids in order, and the last etag.
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
	if fmt.Sprint(ids) != "[i4 new]" && fmt.Sprint(ids) != "[new i4]" {
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
	etag := r.h.Get("etag")
	a.srv.clock.Advance(10 * time.Second)
	now := a.srv.clock.Now()
	a.do("POST", docs, `{"id":"later","pk":"p0"}`, key("p0")).is(201)
	if ids, _ := a.drain(etag); fmt.Sprint(ids) != "[later]" {
		t.Errorf("from now: %v", ids)
	}
	for _, since := range []string{now.Format(http.TimeFormat), now.Format("Mon, 02 Jan 2006 15:04:05 UTC")} {
		if ids, _ := a.drain("", "If-Modified-Since: "+since); fmt.Sprint(ids) != "[later]" {
			t.Errorf("since %s: %v", since, ids)
		}
	}
	a.do("GET", docs, "", incremental, `If-None-Match: "foreign"`).is(400)
	a.do("GET", docs, "", incremental, "If-Modified-Since: yesterday").is(400)
	a.do("GET", docs, "", incremental, "x-ms-documentdb-partitionkeyrangeid: 9").is(410).sub("1002")
	a.do("GET", docs, "", "A-IM: Full-Fidelity Feed").is(400).has("not supported")
}

// Java's newer change feed processor asks for each change as an object that has the item in it.
func TestChangeFeedWireFormat(t *testing.T) {
	a := withItems(t, 1)
	r := a.do("GET", docs, "", incremental, "x-ms-cosmos-changefeed-wire-format-version: 2021-09-15").is(200)
	change := r.json()["Documents"].([]any)[0].(map[string]any)
	item, about := change["current"].(map[string]any), change["metadata"].(map[string]any)
	if item["id"] != "i0" || item["_lsn"] != about["lsn"] || about["crts"] != item["_ts"] {
		t.Errorf("%s", r.body)
	}
}
