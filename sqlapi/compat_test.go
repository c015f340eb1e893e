package sqlapi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// section returns the rows of the tables in a section of the compatibility page, as cells.
func section(t *testing.T, title string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../docs/compat/sql-rest.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n## "+title+"\n")
	if !ok {
		t.Fatalf("no section %s", title)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, line := range strings.Split(rest, "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], "| ")
		}
		rows = append(rows, cells)
	}
	return rows
}

// quoted returns the texts in backquotes.
func quoted(cell string) (out []string) {
	for i, s := range strings.Split(cell, "`") {
		if i%2 == 1 {
			out = append(out, s)
		}
	}
	return out
}

// state returns the state in a row, which must be one of the words that the page explains.
func state(t *testing.T, row []string, at int) string {
	t.Helper()
	if len(row) <= at {
		t.Fatalf("%v has no state", row)
	}
	switch row[at] {
	case "yes", "part", "no", "taken", "state": // the last one: a table's head
	default:
		t.Errorf("%v: %q is no state", row[0], row[at])
	}
	return row[at]
}

// params are the parameters in a route.
var params = regexp.MustCompile(`:[a-z]+`)

// The table of resources lists exactly the routes of the server, with their verbs.
func TestCompatibilityResources(t *testing.T) {
	listed := map[string][]string{}
	for _, row := range section(t, "Resources") {
		if path := quoted(row[0]); len(path) == 1 {
			listed[path[0]] = row
		}
	}
	served := map[string][]string{}
	var paths []string
	for _, l := range newAPI(t).srv.lines {
		p := params.ReplaceAllString(l.path, "*")
		if served[p] == nil {
			paths = append(paths, p)
		}
		served[p] = append(served[p], l.verb)
	}
	verbs := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	for _, p := range paths {
		row, ok := listed[p]
		if !ok {
			t.Errorf("%s is served and not listed", p)
			continue
		}
		delete(listed, p)
		slices.SortFunc(served[p], func(a, b string) int { return slices.Index(verbs, a) - slices.Index(verbs, b) })
		want := strings.Join(served[p], " ")
		if len(served[p]) == len(verbs) && state(t, row, 2) == "no" {
			want = "all"
		}
		if row[1] != want {
			t.Errorf("%s: verbs %q, served %q", p, row[1], want)
		}
	}
	for p := range listed {
		t.Errorf("%s is listed and not served", p)
	}
}

// headerConsts returns the header names of one of the constant blocks of headers.go, in lower case.
func headerConsts(t *testing.T, block int) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "headers.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		if block--; block >= 0 {
			continue
		}
		for _, s := range g.Specs {
			for _, v := range s.(*ast.ValueSpec).Values {
				name, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out[strings.ToLower(name)] = true
			}
		}
		return out
	}
	t.Fatal("no such block")
	return nil
}

// Every header that the server reads or writes is in its table, and a header that the table says has an effect is read
// or written.
func TestCompatibilityHeaders(t *testing.T) {
	for i, title := range []string{"Request headers", "Reply headers"} {
		code := headerConsts(t, i)
		listed := map[string]bool{}
		for _, row := range section(t, title) {
			st := state(t, row, 1)
			for _, h := range quoted(row[0]) {
				listed[h] = true
				if effect := st == "yes" || st == "part"; effect && !code[h] && h != "content-type" {
					t.Errorf("%s: %s is %s and the server doesn't know it", title, h, st)
				}
				if st == "taken" && code[h] {
					t.Errorf("%s: %s is said to have no effect", title, h)
				}
			}
		}
		for h := range code {
			if !listed[h] {
				t.Errorf("%s: %s is not listed", title, h)
			}
		}
	}
}

// Every sub-status that the server gives is listed, and so is every HTTP status.
func TestCompatibilityStatuses(t *testing.T) {
	listed := map[string]string{}
	for _, row := range section(t, "Statuses") {
		for _, s := range strings.FieldsFunc(row[0], func(r rune) bool { return r == ',' || r == ' ' }) {
			listed[s] = state(t, row, 1)
		}
	}
	for code := status.Code(0); code < 64; code++ {
		if n, _ := httpStatus(code); listed[strconv.Itoa(n)] != "yes" && n != http.StatusGone &&
			n != http.StatusTooManyRequests {
			t.Errorf("%d is given and not listed", n)
		}
	}
	for _, s := range []struct{ code, sub int }{
		{400, status.SubPartitionKeyMismatch}, {404, status.SubReadSessionUnavailable},
		{410, status.SubPartitionKeyRangeGone}, {404, status.SubOwnerNotFound},
		{400, subNotServable}, {403, status.SubPartitionKeyFull}, {400, status.SubStaleContainer},
		{412, subConditionNotMet},
		{403, subProvision}, {403, subSharedCount}, {429, status.SubThrottled},
	} {
		if k := fmt.Sprintf("%d/%d", s.code, s.sub); listed[k] != "yes" {
			t.Errorf("%s is given and not listed", k)
		}
	}
}

// The members of a container's definition that the server reads are exactly the listed ones.
func TestCompatibilityDefinition(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range section(t, "Definition of a container") {
		state(t, row, 1)
		if row[0] != "member of `indexingPolicy`" {
			for _, m := range quoted(row[0]) {
				listed[m] = true
			}
		}
	}
	for _, v := range []any{definitionJSON{}, indexingJSON{}} {
		ty := reflect.TypeOf(v)
		for i := range ty.NumField() {
			name, _, _ := strings.Cut(ty.Field(i).Tag.Get("json"), ",")
			if !listed[name] {
				t.Errorf("%s is read and not listed", name)
			}
			delete(listed, name)
		}
	}
	for m := range listed {
		t.Errorf("%s is listed and not read", m)
	}
}

// The limits of the page are those of the code.
func TestCompatibilityLimits(t *testing.T) {
	lang := syntax.DefaultLimits()
	want := map[string]int{
		"id of an item": maxID, "name of a database or container": maxName, "partition key value": maxKeyValue,
		"levels of a hierarchical key": maxKeyPaths, "nesting of an item": doc.DefaultMaxDepth,
		"included paths, excluded paths": core.MaxIndexPaths, "composite indexes": core.MaxCompositeIndexes,
		"paths of a composite index": core.MaxCompositePaths, "unique keys": maxUniqueKeys,
		"paths of a unique key": maxUniquePaths, "computed properties": maxComputed,
		"dimensions of a vector": maxDimensions, "dimensions under a flat index": maxFlatDimensions,
		"throughput, least": core.MinThroughput, "throughput of autoscale, least": core.MinAutoscale,
		"throughput, most": core.MaxThroughput, "operations of a batch": maxBatch, "operations of a patch": maxPatch,
		"JOINs": lang.Joins, "items of an IN": lang.InItems, "databases and containers": maxResources,
		"containers in a shared throughput": maxShared, "body of a request, item": maxBody >> 20,
		"page": maxReply >> 20, "query text": lang.Text >> 10,
		"skew of a signature": int(maxSkew.Minutes()), "life of a resource token": wire.MinTokenLife,
	}
	for _, row := range section(t, "Limits") {
		n, ok := want[row[0]]
		if !ok {
			continue
		}
		delete(want, row[0])
		if first, _, _ := strings.Cut(row[1], " "); first != strconv.Itoa(n) {
			t.Errorf("%s: %s, in the code %d", row[0], row[1], n)
		}
	}
	for name := range want {
		t.Errorf("%s is not listed", name)
	}
}
