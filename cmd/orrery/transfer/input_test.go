package transfer

import "testing"

// The name of a file says where its rows belong.
func TestBase(t *testing.T) {
	for name, want := range map[string]string{"orders.jsonl": "orders", "a/orders.json.gz": "orders", "x.y.csv": "x.y",
		"people.table.json": "people", "people.table.csv.gz": "people", "people.table.jsonl": "people.table"} {
		if got := Base(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
