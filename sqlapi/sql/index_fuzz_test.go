package sql

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// loose matches texts whose rows may differ between executions, or with the order of the items.
var loose = regexp.MustCompile(
	`(?i)top|limit|rand|current|now|ago|_rid|_self|_etag|_ts|_attachments|makelist|makeset|documentid|sum|avg|udf`)

// FuzzIndex finds texts whose rows depend on the index, the slots or the page size.
func FuzzIndex(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	docs := append([]doc.Doc(nil), fuzzDocs...)
	engines, cs := map[int]*core.Engine{}, []*core.Container(nil)
	for _, s := range []string{`{"id":"3","pk":"a","n":10,"a":1,"b":"x","tags":["y",{"g":1}],"o":{"p":{"q":2},` +
		`"x":1},"loc":{"type":"Point","coordinates":[1,2]}}`,
		`{"id":"4","pk":"c","n":-1.5,"a":"1","b":null,"arr":[1,2,"a"],"cat":"fruit"}`,
		`{"id":"5","n":2,"a":1,"b":"xy","arr":[],"o":{"x":null},"cat":"root"}`} {
		d, err := doc.FromJSON(nil, []byte(s), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			f.Fatal(err)
		}
		docs = append(docs, d)
	}
	for i, v := range oracleVariants {
		c := v.container(f, engines, i, docs)
		cs = append(cs, c)
	}
	params := []Param{{Name: "@p", Value: value.StringOf("a")}, {Name: "@n", Value: value.IntOf(1)}}
	f.Fuzz(func(t *testing.T, text string) {
		if loose.MatchString(text) {
			return
		}
		tm := time.AfterFunc(10*time.Second, func() { panic("no answer in time: " + text) })
		defer tm.Stop()
		want, wantErr := evalDocs(text, params, docs, 0)
		if status.CodeOf(wantErr) == status.Timeout {
			return
		}
		slices.Sort(want)
		for i, c := range cs {
			got, err := evalCore(c, text, params, []int{0, 1, 1000}[i%3])
			if slices.Sort(got); (err == nil) != (wantErr == nil) || err == nil && !slices.Equal(got, want) {
				t.Fatalf("%s: %q\n got %s %v\nwant %s %v", oracleVariants[i].name, text, strings.Join(got, " "), err,
					strings.Join(want, " "), wantErr)
			}
		}
	})
}
