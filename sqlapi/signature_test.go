package sqlapi

import (
	"net/http"
	"strings"
	"testing"
)

// A signature is valid only for the exact name, including case: one for "colls/case" isn't accepted for "colls/Case".
// Only links with resource ids are in lower case.
func TestSignatureIsForTheExactName(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"Db"}`).is(201)
	db := a.do("GET", "/dbs/Db", "").json()["_rid"].(string)
	a.do("POST", "/dbs", `{"id":"`+flipCase(db)+`"}`).is(201) // as similar to a resource id as a name can be
	for _, d := range []string{"Db", flipCase(db)} {
		for _, c := range []string{"Case", "case"} {
			a.do("POST", "/dbs/"+d+"/colls", `{"id":"`+c+`","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
		}
		a.do("POST", "/dbs/"+d+"/users", `{"id":"User"}`).is(201)
	}
	coll := a.do("GET", "/dbs/Db/colls/Case", "").json()["_rid"].(string)
	user := a.do("GET", "/dbs/Db/users/User", "").json()["_rid"].(string)
	a.do("POST", "/dbs/Db/colls", `{"id":"`+flipCase(coll)+`","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	a.do("POST", "/dbs/Db/colls/Case/docs", `{"id":"Item","pk":"a"}`, key("a")).is(201)
	item := a.do("GET", "/dbs/Db/colls/Case/docs/Item", "", key("a")).json()["_rid"].(string)
	ranges := a.do("GET", "/dbs/Db/colls/Case/pkranges", "").json()["PartitionKeyRanges"].([]any)
	rng := ranges[0].(map[string]any)["_rid"].(string)
	offer := a.do("GET", "/offers", "").json()["Offers"].([]any)[0].(map[string]any)["_rid"].(string)
	byRID := "dbs/" + db + "/colls/" + coll

	for _, x := range []struct {
		method, target, typ, link string
		want                      int
	}{
		{"GET", "/dbs/Db", "dbs", "dbs/Db", 200},
		{"GET", "/dbs/Db", "dbs", "dbs/db", 401},
		{"GET", "/dbs/Db", "dbs", "db", 401},
		{"GET", "/dbs/Db", "dbs", "Db", 401},
		{"DELETE", "/dbs/Db/colls/Case", "colls", "dbs/Db/colls/case", 401},
		{"DELETE", "/dbs/Db/colls/Case", "colls", "dbs/db/colls/case", 401},
		{"DELETE", "/dbs/Db/colls/case", "colls", "dbs/Db/colls/Case", 401},
		{"DELETE", "/dbs/Db/colls/Case/docs/Item", "docs", "dbs/db/colls/case/docs/item", 401},
		{"POST", "/dbs/Db/colls/Case/operations/partitionkeydelete", "colls", "dbs/db/colls/case", 401},
		{"GET", "/dbs/Db/users/User", "users", "dbs/db/users/user", 401},
		// With resource ids, the whole link or the last id only, as .NET and Java sign them.
		{"GET", "/dbs/" + db, "dbs", "dbs/" + db, 200},
		{"GET", "/dbs/" + db, "dbs", strings.ToLower("dbs/" + db), 200},
		{"GET", "/dbs/" + db, "dbs", strings.ToLower(db), 200},
		{"GET", "/dbs/" + db + "/colls", "colls", strings.ToLower(db), 200},
		{"GET", "/" + byRID, "colls", strings.ToLower(byRID), 200},
		{"GET", "/" + byRID + "/", "colls", strings.ToLower(coll), 200},
		{"GET", "/" + byRID + "/pkranges", "pkranges", strings.ToLower(coll), 200},
		{"GET", "/" + byRID + "/pkranges/" + rng, "pkranges", strings.ToLower(rng), 200},
		{"GET", "/" + byRID + "/docs/" + item, "docs", strings.ToLower(byRID + "/docs/" + item), 200},
		{"GET", "/" + byRID + "/docs/" + item, "docs", strings.ToLower(item), 200},
		{"GET", "/dbs/" + db + "/users/" + user, "users", strings.ToLower(user), 200},
		{"GET", "/dbs/" + db + "/users/" + user + "/permissions", "permissions", strings.ToLower(user), 200},
		{"GET", "/offers/" + offer, "offers", strings.ToLower(offer), 200},
		{"GET", "/offers/" + offer + "/", "offers", "offers/" + offer, 200},
		// A link with a name and a resource id, a name that looks like a resource id, and names of nothing.
		{"GET", "/dbs/" + db + "/colls/Case", "colls", strings.ToLower("dbs/" + db + "/colls/Case"), 401},
		{"GET", "/dbs/" + db + "/colls/Case", "colls", "case", 401},
		{"GET", "/dbs/Db/colls/" + coll, "colls", strings.ToLower("dbs/Db/colls/" + coll), 401},
		{"GET", "/dbs/" + db + "/users/User", "users", "user", 401},
		{"GET", "/" + byRID + "/docs/Item", "docs", strings.ToLower(byRID) + "/docs/item", 401},
		{"GET", "/dbs/" + flipCase(db), "dbs", "dbs/" + flipCase(db), 200},
		{"GET", "/dbs/" + flipCase(db), "dbs", strings.ToLower(db), 401},
		{"GET", "/dbs/Db/colls/" + flipCase(coll), "colls", strings.ToLower(coll), 401},
		{"GET", "/dbs/" + db + "/colls/" + flipCase(coll), "colls", strings.ToLower(coll), 401},
		{"GET", "/dbs/None", "dbs", "dbs/none", 401},
		{"GET", "/dbs/AAAAAA=", "dbs", "dbs/aaaaaa=", 401},
		// A resource id that nothing has, as a client signs it that follows a _self after a delete.
		{"GET", "/dbs/AAAAAA==", "dbs", "dbs/aaaaaa==", 404},
		{"GET", "/dbs/AAAAAA==", "dbs", "dbs/AAAAAA==", 404},
	} {
		date := testNow.Format(http.TimeFormat)
		r := a.do(x.method, x.target, "", key("a"), "x-ms-date: "+date, "authorization: "+
			sign(t, testKey, x.method, x.typ, x.link, date))
		if r.code != x.want {
			t.Errorf("%s %s signed for %q: %d, want %d", x.method, x.target, x.link, r.code, x.want)
		}
	}
	a.do("GET", "/dbs/Db/colls/Case/docs/Item", "", key("a")).is(200) // nothing was deleted
}

// flipCase changes the case of every letter.
func flipCase(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}
