package mongoapi

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestTextsAgainstNaive: $text finds the documents that a naive evaluation of words and phrases finds, while documents
// change, and reads only documents that have one of the words.
func TestTextsAgainstNaive(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	rnd := rand.New(rand.NewPCG(2, 9))
	must := func(d bson.D) bson.Raw {
		t.Helper()
		raw, e := c.ask(d)
		if e.OK != 1 {
			t.Fatalf("%v: %v", d, e)
		}
		return raw
	}
	must(bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{
		{Key: "key", Value: bson.D{{Key: "t", Value: "text"}, {Key: "a.u", Value: "text"}}},
		{Key: "default_language", Value: "none"}, {Key: "name", Value: "t"}}}}})
	words := func(n int) string {
		var out []string
		for range n {
			out = append(out, fmt.Sprintf("w%d", int(rnd.ExpFloat64()*12)))
		}
		return strings.Join(out, " ")
	}
	texts := map[int][]string{}
	write := func(i int) {
		texts[i] = []string{words(1 + rnd.IntN(6)), words(1 + rnd.IntN(3))}
		must(bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{
			{Key: "q", Value: bson.D{{Key: "_id", Value: i}}}, {Key: "u", Value: bson.D{{Key: "t", Value: texts[i][0]},
				{Key: "a", Value: bson.A{bson.D{{Key: "u", Value: texts[i][1]}}, 5}}}},
			{Key: "upsert", Value: true}}}}})
	}
	for i := range 300 {
		write(i)
	}
	has := func(i int, w string) bool {
		return slices.ContainsFunc(texts[i], func(s string) bool { return slices.Contains(strings.Fields(s), w) })
	}
	for n := range 150 {
		write(rnd.IntN(300))
		var search []string
		var any, none, phrases []string
		for range 1 + rnd.IntN(3) {
			w := words(1)
			any, search = append(any, w), append(search, w)
		}
		if rnd.IntN(2) == 0 {
			w := words(1)
			none, search = append(none, w), append(search, "-"+w)
		}
		if rnd.IntN(3) == 0 {
			p := words(2)
			phrases, search = append(phrases, p), append(search, `"`+p+`"`)
			any = append(any, strings.Fields(p)...)
		}
		var want []int
		for i := range 300 {
			ok := slices.ContainsFunc(any, func(w string) bool { return has(i, w) })
			ok = ok && !slices.ContainsFunc(none, func(w string) bool { return has(i, w) })
			for _, p := range phrases {
				ok = ok && slices.ContainsFunc(texts[i], func(s string) bool { return strings.Contains(s, p) })
			}
			if ok {
				want = append(want, i)
			}
		}
		find := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "$text", Value: bson.D{
			{Key: "$search", Value: strings.Join(search, " ")}}}}}, {Key: "batchSize", Value: 500}}
		vs, err := must(find).Lookup("cursor", "firstBatch").Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, v := range vs {
			got = append(got, int(v.Document().Lookup("_id").Int32()))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("%d: %q gives %v, want %v", n, search, got, want)
		}
		candidates := 0
		for i := range 300 {
			if slices.ContainsFunc(any, func(w string) bool { return has(i, w) }) {
				candidates++
			}
		}
		read := must(bson.D{{Key: "explain", Value: find[:2]}, {Key: "verbosity", Value: "executionStats"}}).
			Lookup("executionStats", "totalDocsExamined").AsInt64()
		if read > int64(candidates) && candidates < 100 {
			t.Fatalf("%d: %q read %d documents, %d have one of the words", n, search, read, candidates)
		}
	}
}
