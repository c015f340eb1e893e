package index

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

func mustDoc(t testing.TB, json string) []byte {
	t.Helper()
	d, err := doc.FromJSON(nil, []byte(json), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return d
}

// TestTerms checks the index terms of documents under policies, testdata/terms: the paths that have entries, ^ in place
// of U+0000, with the marks e (array element), l (cut), u (undefined), * (any value) and the kind of the value, and the
// answers of Covers.
func TestTerms(t *testing.T) {
	datadriven.RunTest(t, "testdata/terms", func(t *testing.T, d *datadriven.TestData) string {
		text, policy, _ := strings.Cut(d.Input, "\n")
		p, err := Compile([]byte(policy), 1)
		if err != nil {
			return err.Error() + "\n"
		}
		var terms Terms
		p.Collect(&terms, mustDoc(t, text), 1)
		var b strings.Builder
		var ask []string
		for _, a := range d.CmdArgs {
			ask = append(ask, a.Key)
		}
		for _, name := range ask {
			segs := strings.Split(strings.NewReplacer("~", " ", "^", "\x00").Replace(name), ".")
			fmt.Fprintf(&b, "%s:", name)
			terms.Path(p.PathID(segs), func(val []byte, flag byte) bool {
				mark := map[byte]string{value.ClassUndefined: "u", value.ClassAny: "*"}[val[0]]
				if flag&FlagElement != 0 {
					mark += "e"
				}
				if flag&FlagLossy != 0 {
					mark += "l"
				}
				fmt.Fprintf(&b, " %02x%s", val[0], mark)
				return true
			})
			fmt.Fprintf(&b, "  covers %v, elements %v\n", p.Covers(segs, false), p.Covers(segs, true))
		}
		return b.String()
	})
}

// TestDefault: no policy and the policy Default compile to the same.
func TestDefault(t *testing.T) {
	written, err := Compile([]byte(Default), 7)
	if err != nil {
		t.Fatal(err)
	}
	left, err := Compile(nil, 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{}`, `{"id":"1","a":1,"b":{"c":[1,{"d":null}],"_etag":"x"},"label":"l","_sink":"s"}`} {
		var a, b Terms
		written.Collect(&a, mustDoc(t, text), 1)
		left.Collect(&b, mustDoc(t, text), 1)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v, without a policy %+v", text, a, b)
		}
	}
	for _, path := range []string{"a", "b.c", "_id", "_etag"} {
		segs := strings.Split(path, ".")
		if !written.Covers(segs, true) || !left.Covers(segs, true) {
			t.Errorf("%s isn't covered", path)
		}
	}
	if segs, err := catalog.ParsePath(strings.TrimSuffix(ETagPath, "/?")); err != nil ||
		!slices.Equal(segs, []string{"_etag"}) {
		t.Errorf("%s is %q, %v", ETagPath, segs, err)
	}
	if got, err := strconv.Unquote(ETagJSON); err != nil || got != ETagPath {
		t.Errorf("%s isn't %s", ETagJSON, ETagPath)
	}
}

// TestCoversIsTrue: Collect emits what Covers promises, for a set of policies, documents and paths. The entry of an
// array also represents the objects in it.
func TestCoversIsTrue(t *testing.T) {
	docs := []string{`{"id":"1","a":1,"b":{"c":2,"d":{"e":3}},"x":[1,[2],{"y":5}]}`, `{"id":"1","a":{"b":[{"c":1},` +
		`{"c":[2,3]}]},"b":[{"c":{"e":1}}],"x":{"y":[4]}}`,
		`{"id":"1","a":[[[1]]],"b":{"c":[]},"x":"s","label":["l"],"_sink":{"a":1}}`}
	var policies []string
	paths := []string{"/*", "/a/?", "/a/*", "/b/c/?", "/b/c/*", "/b/*", "/x/[]/?", "/x/[]/y/?", "/x/[]/*",
		"/a/b/[]/c/?", "/label/?", `/"b"/d/*`}
	for _, in := range paths {
		for _, ex := range paths {
			if in != ex {
				policies = append(policies, fmt.Sprintf(`{"includedPaths":[{"path":%q},{"path":"/*"}],`+
					`"excludedPaths":[{"path":%q}]}`, in, ex),
					fmt.Sprintf(`{"includedPaths":[{"path":%q}],"excludedPaths":[{"path":"/*"},{"path":%q}]}`, in, ex))
			}
		}
	}
	policies = append(policies, "", `{"indexingMode":"none"}`, `{"indexingMode":"consistent"}`)
	all := [][]string{{"_id"}, {"a"}, {"b"}, {"x"}, {"b", "c"}, {"b", "d"}, {"b", "d", "e"}, {"x", "y"}, {"a", "b"},
		{"a", "b", "c"}, {"b", "c", "e"}, {"label"}, {"_sink"}, {"_sink", "a"}}
	for _, policy := range policies {
		p, err := Compile([]byte(policy), 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range docs {
			d := mustDoc(t, text)
			var terms Terms
			p.Collect(&terms, d, 1)
			for _, segs := range all {
				for _, elements := range []bool{false, true} {
					if !p.Covers(segs, elements) {
						continue
					}
					each(value.ObjectOf(d), segs, elements, func(v value.Value) {
						want, _ := keys.AppendIndex(nil, v)
						found := false
						terms.Path(p.PathID(segs), func(val []byte, flag byte) bool {
							found = string(val) == string(want) && (elements || flag&FlagElement == 0) ||
								elements && v.Kind() == value.Object && val[0] == value.ClassArray &&
									terms.Elements.Has(p.PathID(segs))
							return !found
						})
						if !found {
							t.Errorf("policy %s covers %v (elements %v) and has no entry for %s of %s", policy, segs,
								elements, doc.AppendJSON(nil, v), text)
						}
					})
				}
			}
		}
	}
}

// each calls f for the values at a path; with elements, also for those inside arrays along it.
func each(v value.Value, segs []string, elements bool, f func(value.Value)) {
	if len(segs) == 0 {
		if v.IsDefined() {
			f(v)
		}
	} else if v.Kind() == value.Object {
		each(v.Get(segs[0]), segs[1:], elements, f)
	}
	if elements && v.Kind() == value.Array {
		for it := v.Iter(); it.Next(); {
			each(it.Value(), segs, true, f)
		}
	}
}

// Beyond 5,000 entries each further path has one "any value" entry, and the sets have its path id.
func TestSpill(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"id":"1","v":[0`)
	for i := range MaxTerms + 1000 {
		fmt.Fprintf(&b, ",%d", i)
	}
	b.WriteString(`],"late":1,"later":{"a":1,"b":[1,2,3]}}`)
	p, err := Compile(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	var terms Terms
	p.Collect(&terms, mustDoc(t, b.String()), 1)
	if n := terms.Len(); n < MaxTerms || n > MaxTerms+10 {
		t.Errorf("%d terms", n)
	}
	for _, path := range []string{"v", "late", "later", "later.a", "later.b"} {
		id := p.PathID(strings.Split(path, "."))
		n := 0
		terms.Path(id, func(val []byte, flag byte) bool {
			if val[0] == value.ClassAny {
				n++
			}
			return true
		})
		if n != 1 || !terms.Elements.Has(id) || !terms.Lossy.Has(id) {
			t.Errorf("%s has %d entries for any value; sets %v %v", path, n, terms.Elements.Has(id),
				terms.Lossy.Has(id))
		}
		var sums [1]Counts
		if terms.Count([]uint64{id}, sums[:], 1); path != "v" && sums[0] != (Counts{Elements: 1, Lossy: 1}) {
			t.Errorf("%s counts as %+v", path, sums[0])
		}
	}
}

// Diff turns one set of terms into the other.
func TestDiff(t *testing.T) {
	p, _ := Compile(nil, 1)
	docs := []string{`{"id":"1"}`, `{"id":"1","a":1,"b":[1,2]}`, `{"id":"1","a":[1],"b":[2,3]}`,
		`{"id":"2","b":{"a":1}}`, `{"id":"1","a":1,"b":1}`}
	for _, x := range docs {
		for _, y := range docs {
			var from, to Terms
			p.Collect(&from, mustDoc(t, x), 1)
			p.Collect(&to, mustDoc(t, y), 2)
			got := map[string]byte{}
			for i := range from.Len() {
				b, flag := from.At(i)
				got[string(b)] = flag
			}
			Diff(&from, &to, func(b []byte) {
				if _, ok := got[string(b)]; !ok {
					t.Errorf("%s to %s deletes what isn't there", x, y)
				}
				delete(got, string(b))
			}, func(b []byte, flag byte) { got[string(b)] = flag })
			for i := range to.Len() {
				b, flag := to.At(i)
				if got[string(b)] != flag {
					t.Errorf("%s to %s: term %x has flag %x, want %x", x, y, b, got[string(b)], flag)
				}
			}
			if len(got) != to.Len() {
				t.Errorf("%s to %s: %d terms, want %d", x, y, len(got), to.Len())
			}
		}
	}
}

// FuzzCollect: the walk doesn't panic on any document bytes, and the terms are sorted and unique.
func FuzzCollect(f *testing.F) {
	f.Add(mustDoc(f, `{"id":"1","a":[1,{"b":2}],"label":"x","_isEdge":true}`))
	policies := []*Policy{}
	for _, text := range []string{"", `{"indexingMode":"none"}`, `{"includedPaths":[{"path":"/a/[]/b/?"}],` +
		`"excludedPaths":[{"path":"/*"}]}`,
		`{"compositeIndexes":[[{"path":"/a"},{"path":"/label/x","order":"descending"}]]}`} {
		p, _ := Compile([]byte(text), 1)
		policies = append(policies, p)
	}
	f.Fuzz(func(t *testing.T, d []byte) {
		for _, p := range policies {
			var terms Terms
			p.Collect(&terms, d, 1)
			for i := 1; i < terms.Len(); i++ {
				a, _ := terms.At(i - 1)
				b, _ := terms.At(i)
				if string(a) >= string(b) {
					t.Fatal("terms out of order")
				}
			}
		}
	})
}

// FuzzCompile: Compile doesn't panic on any policy text.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"indexingMode":"consistent","includedPaths":[{"path":"/a/[]/?"}],` +
		`"excludedPaths":[{"path":"/\"b c\"/*"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := Compile(text, 1); err == nil {
			p.Covers([]string{"a", "b"}, true)
		}
	})
}
