package door

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
)

// The items of a page are found wherever its list stands, and what is cut off or no page is an error, not less items.
func TestEachItem(t *testing.T) {
	for page, want := range map[string]string{
		`{"_rid":"x","Documents":[{"id":"1","_rid":"a","_ts":1},{"id":"2"}],"_count":2}`: `{"id":"1"} {"id":"2"}`,
		`{"Documents":[]}`: "", `{"_count":0}`: "",
		" {\n\"a\" : {\"Documents\":[1]} , \"Documents\" : [ {\"id\":\"1\"} ] } ": `{"id":"1"}`,
		`{"Documents":[{"id":"1"},{"id":"2"`:                                      "error",
		`{"Documents":[{"id":"1"}`:                                                "error",
		`{"Documents":[{"id":"1"}]`:                                               "error",
		`{"Documents":[{"id":"1"} {"id":"2"}]}`:                                   "error",
		`{"Documents":{"id":"1"}}`:                                                "error",
		`[]`:                                                                      "error", ``: "error", `{`: "error", `{"a"`: "error", `{"a":`: "error", `{"a":1,}`: "error",
	} {
		var got []string
		var n int64
		err := eachItem([]byte(page), &n, func(r *transfer.Row) error {
			got = append(got, string(r.Text))
			return nil
		})
		text := strings.Join(got, " ")
		if err != nil {
			text = "error"
		}
		if text != want {
			t.Errorf("%s: %q, %v", page, text, err)
		}
	}
}
