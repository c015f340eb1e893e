package plan

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestChoose asserts the trees of testdata: each case says what is known of the data and what a query wants, and shows
// the tree that is chosen with what lost, and what was counted for it. A change of a choice is a difference there:
//
//	go test ./core/plan -run TestChoose -rewrite
func TestChoose(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files (%v)", err)
	}
	cases := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				cases++
				f, r := setUp(t, d)
				tree := Choose(r, f)
				var b strings.Builder
				b.WriteString(tree.Explain(false).String())
				for _, a := range f.asked {
					fmt.Fprintf(&b, "counted %s\n", a)
				}
				for _, k := range tree.Access.Keys {
					b.WriteString("key")
					for _, v := range append(k.PK, k.ID) {
						if v.IsDefined() {
							b.WriteString(" " + shown(v))
						}
					}
					b.WriteByte('\n')
				}
				return b.String()
			})
		})
	}
	if cases < 60 {
		t.Errorf("only %d cases", cases)
	}
}
