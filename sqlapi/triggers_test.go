package sqlapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/sqlapi/script"
)

const (
	preTrigger  = "x-ms-documentdb-pre-trigger-include: "
	postTrigger = "x-ms-documentdb-post-trigger-include: "
)

// triggerPrograms are a pre-trigger that stamps an item, one that refuses it, a post-trigger that counts items, and one
// that fails after it has counted.
var triggerPrograms = fakeScripts{
	"stamp": func(r *fakeRun) error {
		var d map[string]any
		if json.Unmarshal(r.Request.Body, &d) == nil {
			d["by"] = r.Request.Operation
			r.res.Request, _ = json.Marshal(d)
		}
		return nil
	},
	"refuse": func(*fakeRun) error { return &script.Error{Status: 400, Sub: 7, Body: "refused"} },
	"move":   func(r *fakeRun) error { r.res.Request = []byte(`{"id":"1","pk":"b"}`); return nil },
	"count":  countItems,
	"fail": func(r *fakeRun) error {
		if err := countItems(r); err != nil {
			return err
		}
		return &script.Error{Status: 400, Body: "failed"}
	},
	"answer": func(r *fakeRun) error {
		if h := r.Response.Headers; len(h) != 2 || !strings.HasPrefix(h[1].Value, "functions=0;storedProcedures=0;") {
			return fmt.Errorf("a post-trigger gets the headers %v", h)
		}
		r.res.Response = append(append([]byte(`{"was":`), r.Response.Body...), '}')
		return nil
	},
}

func countItems(r *fakeRun) error {
	got, err := r.do("queryDocuments", "", `{"query":"SELECT VALUE COUNT(1) FROM c WHERE c.id != 'count'"}`, "")
	if err == nil {
		_, err = r.do("upsertDocument", "", `{"id":"count","pk":"a","n":`+strings.Trim(got, "[]")+`}`, "")
	}
	return err
}

func withTriggers(t *testing.T) *api {
	a := withScripts(t, triggerPrograms)
	for id, more := range map[string]string{
		"stamp": "Pre All", "refuse": "Pre All", "move": "Pre All", "count": "Post All", "fail": "Post All",
		"answer": "Post All",
	} {
		typ, operation, _ := strings.Cut(more, " ")
		a.addProgram("triggers", id, `,"triggerType":"`+typ+`","triggerOperation":"`+operation+`"`)
	}
	for _, operation := range []string{"Create", "Replace", "Update", "Delete"} {
		a.do("POST", "/dbs/db/colls/c/triggers", `{"id":"on`+operation+`","body":"stamp","triggerType":"pre",`+
			`"triggerOperation":"`+operation+`"}`).is(201)
	}
	return a
}

func TestTriggersRunWithWrites(t *testing.T) {
	a := withTriggers(t)
	docs := "/dbs/db/colls/c/docs"
	item := func(id string) *reply { return a.do("GET", docs+"/"+id, "", key("a")) }
	r := a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), preTrigger+"stamp", postTrigger+"count").is(201).
		has(`"by":"Create"`)
	if now := item("1").is(200); now.body != r.body || now.h.Get("etag") != r.h.Get("etag") {
		t.Errorf("the reply is %s, the item %s", r.body, now.body)
	}
	item("count").is(200).has(`"n":1`)
	a.do("PUT", docs+"/1", `{"id":"1","pk":"a"}`, key("a"), preTrigger+"stamp").is(200).has(`"by":"Replace"`)
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), preTrigger+" stamp ", "x-ms-documentdb-is-upsert: true").
		is(200).has(`"by":"Upsert"`)
	a.do("POST", docs, `{"id":"2","pk":"a"}`, key("a"), postTrigger+"count", "x-ms-documentdb-is-upsert: true").is(201)
	item("count").has(`"n":2`)
	a.do("POST", docs, `{"id":"3","pk":"a"}`, key("a"), postTrigger+"answer").is(201).has(`{"was":{"id":"3"`)
	a.do("POST", docs, `{"id":"4","pk":"a"}`, key("a"), postTrigger+"answer", "prefer: return=minimal").is(201).
		has("")
	a.do("DELETE", docs+"/2", "", key("a"), preTrigger+"stamp", postTrigger+"count").is(204)
	item("2").is(404)
	item("count").has(`"n":3`)
	a.do("PUT", docs+"/1", `{"id":"1","pk":"a"}`, key("a"), preTrigger+"stamp", `if-match: "x"`).is(412)
	a.do("PUT", docs+"/9", `{"id":"9","pk":"a"}`, key("a"), preTrigger+"stamp").is(404)
	a.do("PUT", docs+"/1", `{"id":"9","pk":"a"}`, key("a"), preTrigger+"stamp").is(400)
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), preTrigger+"stamp").is(409)
	a.do("DELETE", docs+"/9", "", key("a"), preTrigger+"stamp").is(404)
}

// TestTriggersRollBack: a trigger that throws leaves neither the item nor what another trigger has written.
func TestTriggersRollBack(t *testing.T) {
	a := withTriggers(t)
	docs := "/dbs/db/colls/c/docs"
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), preTrigger+"refuse").is(400).sub("7").has("refused")
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), postTrigger+"fail").is(400).has("failed")
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), preTrigger+"move").is(400).sub("1001")
	a.do("GET", docs, "", key("a")).is(200).has(`"Documents":[]`)
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a")).is(201)
	a.do("DELETE", docs+"/1", "", key("a"), preTrigger+"refuse").is(400)
	a.do("DELETE", docs+"/1", "", key("a"), postTrigger+"fail").is(400)
	a.do("PUT", docs+"/1", `{"id":"1","pk":"a","n":1}`, key("a"), postTrigger+"fail").is(400)
	a.do("GET", docs, "", key("a")).is(200).has(`"_count":1`)
}

// TestTriggersOfTheWrongKind names triggers that don't fit the request. Nothing is written.
func TestTriggersOfTheWrongKind(t *testing.T) {
	a := withTriggers(t)
	docs := "/dbs/db/colls/c/docs"
	for _, h := range []string{preTrigger + "none", preTrigger + "count", postTrigger + "stamp",
		preTrigger + "stamp,refuse", preTrigger + "onReplace", preTrigger + "onUpdate", preTrigger + "onDelete"} {
		a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), h).is(400)
	}
	a.do("GET", docs, "", key("a")).is(200).has(`"Documents":[]`)
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), preTrigger+"onCreate").is(201)
	for _, name := range []string{"onReplace", "onUpdate"} {
		a.do("PUT", docs+"/1", `{"id":"1","pk":"a"}`, key("a"), preTrigger+name).is(200)
	}
	for _, name := range []string{"onReplace", "onUpdate", "onCreate"} {
		a.do("DELETE", docs+"/1", "", key("a"), preTrigger+name).is(400)
		a.do("POST", docs, `{"id":"2","pk":"a"}`, key("a"), preTrigger+name, "x-ms-documentdb-is-upsert: true")
	}
	a.do("POST", docs, `{"id":"2","pk":"a"}`, key("a"), preTrigger+"onDelete", "x-ms-documentdb-is-upsert: true").
		is(400)
	a.do("PATCH", docs+"/1", `[{"op":"set","path":"/n","value":1}]`, key("a"), preTrigger+"stamp").is(400)
	a.do("DELETE", docs+"/1", "", key("a"), preTrigger+"onDelete").is(204)
}
