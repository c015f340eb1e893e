package sqlapi

import (
	"strings"
	"testing"
)

// A full-text index is kept with the languages of the full-text policy, and shown as it was written. Another language
// makes other entries, and a definition without the index removes it.
func TestFullTextIndexes(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	const key = `"id":"c","partitionKey":{"paths":["/pk"]}`
	policy := func(language string) string {
		return `{` + key + `,"fullTextPolicy":{"fullTextPaths":[{"path":"/text","language":"` + language + `"}]},` +
			`"indexingPolicy":{"fullTextIndexes":[{"path":"/text"}]}}`
	}
	r := a.do("POST", "/dbs/db/colls", policy("en-US")).is(201)
	if !strings.Contains(r.body, `"fullTextIndexes":[{"path":"/text"}]`) || strings.Contains(r.body, `"textIndexes"`) {
		t.Errorf("shown as %s", r.body)
	}
	a.do("POST", "/dbs/db/colls/c/docs", `{"id":"1","pk":"a","text":"Les chevaux de la maison"}`,
		`x-ms-documentdb-partitionkey: ["a"]`).is(201)
	a.do("POST", "/dbs/db/colls/c/docs", `{"id":"2","pk":"a","text":"Horses"}`,
		`x-ms-documentdb-partitionkey: ["a"]`).is(201)
	count := func(want int, where string) {
		t.Helper()
		r := a.do("POST", "/dbs/db/colls/c/docs", `{"query":"SELECT VALUE c.id FROM c WHERE `+where+`"}`,
			"x-ms-documentdb-isquery: True", `x-ms-documentdb-partitionkey: ["a"]`).is(200)
		if got := strings.Count(r.body, `"1"`); got != want {
			t.Errorf("%s: %s", where, r.body)
		}
	}
	count(0, "FullTextContains(c.text, 'cheval')")
	count(1, "FullTextContains(c.text, 'chevaux')")
	a.do("PUT", "/dbs/db/colls/c", policy("fr-FR")).is(200)
	count(1, "FullTextContains(c.text, 'cheval')")
	count(1, "FullTextContains(c.text, 'de la')")
	r = a.do("PUT", "/dbs/db/colls/c", `{`+key+`}`).is(200)
	if strings.Contains(r.body, "extIndexes") {
		t.Errorf("shown as %s", r.body)
	}
	count(1, "FullTextContains(c.text, 'chevaux')")
}
