package sql

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/gateway"
)

// TestQueryPlans runs testdata/plans.txt: `> query`, the plan's JSON, or `! error`. A line `features a,b` sets the
// client's list, `pk /a,/b` the partition key. Each rewritten text must compile as an ordinary query.
func TestQueryPlans(t *testing.T) {
	b, err := os.ReadFile("testdata/plans.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var features []string
	def := core.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}
	params := []Param{{Name: "@p", Value: value.StringOf("x")}, {Name: "@n", Value: value.IntOf(5)}}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "features "):
			features = strings.Split(line[len("features "):], ",")
		case strings.HasPrefix(line, "pk "):
			def = core.PartitionKeyDef{Paths: strings.Split(line[3:], ","), Kind: "Hash", Version: 2}
			if len(def.Paths) > 1 {
				def.Kind = "MultiHash"
			}
		case strings.HasPrefix(line, "> "):
			got, err := QueryPlan(line[2:], params, features, def)
			if err != nil {
				got = []byte("! " + strings.ReplaceAll(err.Error(), "\r\n", " "))
			} else {
				rewrittenRuns(t, string(got), params)
			}
			if want := lines[min(i+1, len(lines)-1)]; !*rewrite && want != string(got) {
				t.Errorf("line %d: %s\n got %s\nwant %s", i+1, line, got, want)
			}
			fmt.Fprintf(&out, "%s\n%s\n", line, got)
			continue
		case strings.HasPrefix(line, "{"), strings.HasPrefix(line, "! "):
			continue
		}
		out.WriteString(line + "\n")
	}
	if *rewrite {
		if err := os.WriteFile("testdata/plans.txt", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// placeholders are the texts that clients replace by statistics.
var placeholders = regexp.MustCompile(`\{documentdb-formattablehybridsearchquery-[a-z]+(-[0-9]+)?\}`)

func rewrittenRuns(t *testing.T, plan string, params []Param) {
	t.Helper()
	v, err := doc.ValueFromJSON([]byte(plan))
	if err != nil {
		t.Fatalf("plan is no JSON: %v\n%s", err, plan)
	}
	texts := []string{v.Get("queryInfo").Get("rewrittenQuery").Str()}
	if hybrid := v.Get("hybridSearchQueryInfo"); hybrid.IsDefined() {
		texts = []string{hybrid.Get("globalStatisticsQuery").Str()}
		for it := hybrid.Get("componentQueryInfos").Iter(); it.Next(); {
			texts = append(texts, it.Value().Get("rewrittenQuery").Str())
		}
	}
	for _, text := range texts {
		if text == "" {
			continue
		}
		text = placeholders.ReplaceAllString(strings.ReplaceAll(text, gateway.FilterPlaceholder, "true"), "[5]")
		text = strings.ReplaceAll(text, ", [5], [5], [5])", ", 5, 5, [5])")
		if _, err := Compile(text, params, nil); err != nil {
			t.Errorf("rewritten text does not compile: %v\n%s", err, text)
		}
	}
}
