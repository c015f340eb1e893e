package mongoapi

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestDifferencesAreTested: docs/mongodb.md numbers the differences from MongoDB, and the tests that it names exist.
func TestDifferencesAreTested(t *testing.T) {
	page, err := os.ReadFile("../docs/mongodb.md")
	if err != nil {
		t.Fatal(err)
	}
	code := strings.Builder{}
	for _, pattern := range []string{"*_test.go", "../conformance/mongo/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(b)
		}
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| .* \| (.*) \|$`).FindAllStringSubmatch(string(page), -1)
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Errorf("row %s is number %d", row[1], i+1)
		}
		tests := regexp.MustCompile("`(Test\\w+)(?:/(\\w+))?`").FindAllStringSubmatch(row[2], -1)
		if len(tests) == 0 {
			t.Errorf("difference %s has no test", row[1])
		}
		for _, x := range tests {
			if !strings.Contains(code.String(), "func "+x[1]+"(t *testing.T)") {
				t.Errorf("difference %s: there is no %s", row[1], x[1])
			}
			if x[2] == "" {
				continue
			}
			if _, err := os.Stat("testdata/commands/" + x[2]); err != nil {
				t.Errorf("difference %s: %v", row[1], err)
			}
		}
	}
	if len(rows) < 10 {
		t.Errorf("%d differences", len(rows))
	}
}

// TestIdleCursorsSeeLaterWrites: a cursor between two batches holds its position and no snapshot.
func TestIdleCursorsSeeLaterWrites(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	someDocs(c, "c", 6, "")
	raw, _ := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "n", Value: 1}}},
		{Key: "projection", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "batchSize", Value: 2}})
	c.ask(bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{
		bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 3}}}, {Key: "limit", Value: 1}}}}})
	c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{
		bson.D{{Key: "_id", Value: 9}, {Key: "n", Value: 9}}, bson.D{{Key: "_id", Value: 8}, {Key: "n", Value: -1}}}}})
	raw, e := c.ask(bson.D{{Key: "getMore", Value: raw.Lookup("cursor", "id").Int64()}, {Key: "collection",
		Value: "c"}})
	if e.OK != 1 {
		t.Fatal(raw)
	}
	got := raw.Lookup("cursor", "nextBatch").String()
	if strings.Contains(got, `"3"`) || !strings.Contains(got, `"9"`) || strings.Contains(got, `"8"`) {
		t.Errorf("%s", got)
	}
}
