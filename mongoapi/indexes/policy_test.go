package indexes

import (
	"encoding/json"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// specs returns declared indexes with these keys.
func specs(t *testing.T, keys ...string) (out []value.Value) {
	for _, k := range keys {
		v, err := doc.ValueFromJSON([]byte(`{"v":2,"key":` + k + `,"name":"n"}`))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func TestPolicy(t *testing.T) {
	const plain = `"excludedPaths":[{"path":"/\"_etag\"/?"}],"includedPaths":[{"path":"/*"}],` +
		`"indexingMode":"consistent"}`
	const ab = `[{"path":"/a","order":"ascending"},{"path":"/b/c","order":"descending"}]`
	for _, x := range []struct {
		what, policy string
		old, specs   []value.Value
		want         string
	}{
		{"a single path needs none", "", nil, specs(t, `{"a":1}`, `{"a":-1}`), ""},
		{"a compound index", "", nil, specs(t, `{"a":1,"b.c":-1}`), `{"automatic":true,"compositeIndexes":[` + ab +
			`],` + plain},
		{"which is there already", "", nil, specs(t, `{"a":1,"b.c":-1}`, `{"a":1.0,"b.c":-0.5}`),
			`{"automatic":true,"compositeIndexes":[` + ab + `],` + plain},
		{"odd names", "", nil, specs(t, `{"_id":1,"a b.ö":1}`),
			`{"automatic":true,"compositeIndexes":[[{"path":"/id","order":"ascending"},{"path":"/\"a b\"/\"ö\"",` +
				`"order":"ascending"}]],` + plain},
		{"names that no policy has", "", nil,
			specs(t, `{"id":1,"b":1}`, `{"_ts":1,"b":1}`, `{"a*":1,"b":1}`, `{"a\"":1,"b":1}`), ""},
		{"other kinds", "", nil, specs(t, `{"a":"hashed","b":1}`, `{"$**":1}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,`+
			`"f":1,"g":1,"h":1,"i":1}`), ""},
		{"one that goes", `{"automatic":true,"compositeIndexes":[` + ab + `],` + plain, specs(t, `{"a":1,"b.c":-1}`),
			nil, `{"automatic":true,` + plain},
		{"one of somebody else stays", `{"compositeIndexes":[` + ab + `]}`, nil, specs(t, `{"x":1,"y":1}`),
			`{"compositeIndexes":[` + ab + `,[{"path":"/x","order":"ascending"},{"path":"/y","order":"ascending"}]]}`},
		{"vectors have no entries", "", nil, specs(t, `{"a.v":"cosmosSearch"}`), `{"automatic":true,` +
			`"excludedPaths":[{"path":"/\"_etag\"/?"},{"path":"/a/v/*"}],"includedPaths":[{"path":"/*"}],` +
			`"indexingMode":"consistent"}`},
		{"until their index goes", `{"excludedPaths":[{"path":"/v/*"}],"includedPaths":[{"path":"/*"}]}`,
			specs(t, `{"v":"cosmosSearch"}`), nil, `{"includedPaths":[{"path":"/*"}]}`},
		{"all other paths have", `{"automatic":true}`, nil, specs(t, `{"v":"cosmosSearch"}`), `{"automatic":true,` +
			`"excludedPaths":[{"path":"/v/*"}],"includedPaths":[{"path":"/*"}]}`},
		{"nothing is indexed", `{"indexingMode":"none"}`, nil, specs(t, `{"a":1,"b":1}`), `{"indexingMode":"none"}`},
	} {
		got := Policy([]byte(x.policy), x.old, x.specs)
		if string(got) != x.want {
			t.Errorf("%s: %s\nwant %s", x.what, got, x.want)
		}
		if len(got) > 0 && !json.Valid(got) {
			t.Errorf("%s: %s is no JSON", x.what, got)
		}
	}
}
