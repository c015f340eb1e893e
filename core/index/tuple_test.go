package index

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseTuple(t *testing.T) {
	for path, want := range map[string]string{
		"/events/[]/{name, category}/?":              "/events [name category]",
		"/events/[]/{name/first, name/last}/?":       "/events [name/first name/last]",
		"/a/b/[]/{c}/?":                              "/a/b [c]",
		`/a/[]/{"odd name",b}/?`:                     `/a ["odd name" b]`,
		"/events/[]/{name/[1]/first, category}/?":    "/events [name/[1]/first category]",
		"/events/[]/{[1], [3]}/?":                    "/events [[1] [3]]",
		"/city/[1]/events/[]/{name, category}/?":     "/city/[1]/events [name category]",
		"/events/[]/{name/[]/first, category}/?":     "",
		"/events/[]/{name, category}/*":              "",
		"/events/[]/{{name, first},category}/?":      "",
		"/events/{name, category}/?":                 "",
		"/events/[]/{/name,/category}/?":             "",
		"/events/[]/{name/?,category/?}/?":           "",
		"/city/[]/events/[]/{name, category}/?":      "",
		"/events/[]/{}/?":                            "",
		"/events/[]/{name,}/?":                       "",
		"/events/[]/{name":                           "",
		"/[]/{name}/?":                               "",
		"/e/[]/{" + strings.Repeat("a,", 8) + "a}/?": "",
	} {
		array, members, ok := ParseTuple(path)
		got := ""
		if ok {
			got = fmt.Sprintf("%s %s", array, members)
		}
		if got != want || !IsTuple(path) {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
		_, err := Compile(fmt.Appendf(nil, `{"includedPaths":[{"path":%q},{"path":"/*"}]}`, path), 1)
		if (err == nil) != (want != "") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"/*", "/a/?", `/"a/{b}"/?`, "/a{b/?"} {
		if IsTuple(path) {
			t.Errorf("%s is no tuple path", path)
		}
	}
}

// An item has an entry for each element with a value at the first member (one for equal elements), and one entry for
// all elements beyond the limit.
func TestTupleTerms(t *testing.T) {
	p, err := Compile([]byte(`{"includedPaths":[{"path":"/e/[]/{a, b}/?"}],"excludedPaths":[{"path":"/*"}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	id := p.Tuples()[0].ID
	many := make([]string, maxTuples+100)
	for i := range many {
		many[i] = fmt.Sprintf(`{"a":%d,"b":1}`, i)
	}
	for json, want := range map[string]int{
		`{"id":"1"}`:             0,
		`{"id":"1","e":{"a":1}}`: 0,
		`{"id":"1","e":[1,"x",null,[{"a":1}],{"b":1}]}`:                                            0,
		`{"id":"1","e":[{"a":1,"b":1},{"a":1,"b":1},{"a":1},{"a":1,"b":2},{"a":{"x":1},"b":[1]}]}`: 4,
		`{"id":"1","e":[` + strings.Join(many, ",") + `]}`:                                         maxTuples + 1,
	} {
		var terms Terms
		p.Collect(&terms, mustDoc(t, json), 1)
		n, rest := 0, 0
		terms.Path(id, func(val []byte, flag byte) bool {
			if n++; string(val) == string(p.Tuples()[0].Rest()) {
				rest++
			}
			return flag&FlagElement != 0
		})
		if n != want || (rest == 1) != (want > maxTuples) {
			t.Errorf("%.60s: %d entries, want %d (%d for the rest)", json, n, want, rest)
		}
	}
}
