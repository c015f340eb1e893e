package agg

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// TestUnwindReads: the stages behind an $unwind give the same, whether it returns whole documents or only the fields
// that they read. A $redact between them, which keeps all, reads whole documents.
func TestUnwindReads(t *testing.T) {
	h := &memHost{colls: map[string][]value.Value{}}
	for _, d := range []string{
		`{"_id":1,"a":[1,2,2],"b":{"c":[{"d":1,"x":5},{"d":2}],"e":7},"k":"p","n":3,"i":{"j":1}}`,
		`{"_id":2,"a":5,"b":{"c":{"d":4}},"k":"q","n":1}`,
		`{"_id":3,"a":[],"b":3,"k":"p"}`,
		`{"_id":4,"k":"r","a":null,"n":9}`,
		`{"_id":5,"n":2,"a":[[1],{"z":1}],"b":{"c":[]}}`,
	} {
		h.colls["c"] = append(h.colls["c"], mtest.Value(t, d))
	}
	h.colls["o"] = []value.Value{mtest.Value(t, `{"_id":"p","v":1}`)}
	for _, tc := range []struct {
		behind string
		whole  bool // its stages read whole documents
	}{
		{behind: `{"$group":{"_id":"$k","n":{"$sum":"$n"},"all":{"$push":"$a"}}}`},
		{behind: `{"$group":{"_id":{"k":"$k","e":"$b.e"},"first":{"$first":"$b.c.d"}}}`},
		{behind: `{"$match":{"a":{"$gt":1},"$or":[{"n":3},{"$expr":{"$eq":["$k","q"]}}]}},{"$count":"n"}`},
		{behind: `{"$sort":{"n":-1,"a":1}},{"$limit":4},{"$skip":1},{"$project":{"a":1,"b.e":1}}`},
		{behind: `{"$project":{"_id":0,"a":"$n","k":1,"x":{"$add":["$n",1]}}}`},
		{behind: `{"$addFields":{"b.f":"$k","q":1}},{"$replaceRoot":{"newRoot":{"b":"$b","q":"$q"}}}`},
		{behind: `{"$unwind":{"path":"$b.c","includeArrayIndex":"i.n","preserveNullAndEmptyArrays":true}},` +
			`{"$group":{"_id":"$a","i":{"$push":"$i"},"c":{"$push":"$b"}}}`},
		{behind: `{"$sortByCount":"$k"}`},
		{behind: `{"$bucket":{"groupBy":"$n","boundaries":[0,3,10],"default":"other","output":{"a":{"$push":"$a"}}}}`},
		{behind: `{"$match":{"n":{"$gt":0}}}`, whole: true},
		{behind: `{"$group":{"_id":"$k","d":{"$push":"$$ROOT"}}}`, whole: true},
		{behind: `{"$project":{"b":0}},{"$group":{"_id":null,"d":{"$push":"$$CURRENT"}}}`, whole: true},
		{behind: `{"$project":{"a":{"$getField":"n"}}}`, whole: true},
		{behind: `{"$match":{"$jsonSchema":{"required":["b"]}}},{"$count":"n"}`, whole: true},
		{behind: `{"$lookup":{"from":"o","localField":"k","foreignField":"_id","as":"o"}},{"$count":"n"}`, whole: true},
	} {
		specs := value.Elements(mtest.Value(t, `[`+tc.behind+`]`))
		if got := readBehind(specs) == nil; got != tc.whole {
			t.Errorf("%s: whole documents are read: %v", tc.behind, got)
		}
		for _, unwind := range []string{`{"$unwind":"$a"}`, `{"$unwind":"$b.c"}`,
			`{"$unwind":{"path":"$a","includeArrayIndex":"i.at","preserveNullAndEmptyArrays":true}}`} {
			result := func(between string) string {
				docs, err := run(h, "c", mtest.Value(t, `[`+unwind+between+`,`+tc.behind+`]`))
				if err != nil {
					return mtest.Error(err)
				}
				var b strings.Builder
				for _, d := range docs {
					b.WriteString(mtest.Text(d) + "\n")
				}
				return b.String()
			}
			if got, want := result(""), result(`,{"$redact":"$$KEEP"}`); got != want {
				t.Errorf("%s, %s: got\n%swant\n%s", unwind, tc.behind, got, want)
			}
		}
	}
}
