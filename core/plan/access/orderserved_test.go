package access

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/value"
)

func TestServesOrder(t *testing.T) {
	pol, err := index.Compile(
		[]byte(
			`{"indexingMode":"consistent","includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/x/*"}],"compositeIndexes":[
		[{"path":"/a","order":"ascending"},{"path":"/b","order":"descending"}],
		[{"path":"/k","order":"ascending"},{"path":"/c/d","order":"ascending"},{"path":"/_ts","order":"ascending"}],
		[{"path":"/x","order":"ascending"},{"path":"/\"y z\"","order":"ascending"}]]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	k := Eq(NewPath("k"), value.Int32Of(1))
	for _, tc := range []struct {
		order  string
		filter *Pred
		want   OrderSupport
	}{
		{"", nil, OrderServed},
		{"a", nil, OrderServed},
		{"-x", nil, OrderExcluded},
		{"x.y", nil, OrderExcluded},
		{"-\x00_ts", nil, OrderServed},
		{"a -b", nil, OrderServed},
		{"-a b", nil, OrderServed},
		{"a b", nil, OrderNoComposite},
		{"-b a", nil, OrderNoComposite},
		{"x y_z", nil, OrderServed}, // the paths of a composite index need no index of their own
		{"k c.d \x00_ts", nil, OrderServed},
		{"k c.d", nil, OrderNoComposite}, // not the whole of it
		{"c.d \x00_ts", nil, OrderNoComposite},
		{"c.d \x00_ts", k, OrderServed},
		{"-c.d -\x00_ts", And(k, Exists(NewPath("a"))), OrderServed},
		{"c.d \x00_ts", Or(k, Exists(NewPath("a"))), OrderNoComposite},
	} {
		var by []By
		for _, f := range strings.Fields(tc.order) {
			name, desc := strings.CutPrefix(f, "-")
			by = append(by, By{NewPath(strings.Split(strings.ReplaceAll(name, "y_z", "y z"), ".")...), desc})
		}
		if got := ServesOrder(pol, by, tc.filter); got != tc.want {
			t.Errorf("order by %q: %d, want %d", tc.order, got, tc.want)
		}
	}
	for _, bad := range []string{`[[]]`, `[[{"path":"a"}]]`, `[[{"path":"/a"},{"path":"/a"},{"path":"/a"},` +
		`{"path":"/a"},{"path":"/a"},{"path":"/a"},{"path":"/a"},{"path":"/a"},{"path":"/a"}]]`,
		"[" + strings.Repeat(`[{"path":"/a"},{"path":"/b"}],`, 100) + `[{"path":"/a"},{"path":"/b"}]]`} {
		if _, err := index.Compile([]byte(`{"includedPaths":[{"path":"/*"}],"compositeIndexes":`+bad+`}`),
			1); err == nil {
			t.Errorf("composite indexes %.40s are accepted", bad)
		}
	}
}
