package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestChoose asserts the trees of testdata. Each case has statistics and a query, and shows the chosen tree, the
// alternatives that lost, and what was counted. A changed choice is a difference there:
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
				if choose, ok := running[d.Cmd]; ok {
					return choose(f, r) + "\n"
				}
				r.Explain = true
				tree := Choose(r, f)
				choosesTheSame(t, d)
				var b strings.Builder
				b.WriteString(tree.Explain(false).String())
				for _, a := range f.asked {
					fmt.Fprintf(&b, "counted %s\n", a)
				}
				for _, a := range f.explained {
					fmt.Fprintf(&b, "for EXPLAIN %s\n", a)
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

// running are the choices that are made while a tree is run.
var running = map[string]func(f *fake, r *Request) string{
	"walked": func(f *fake, r *Request) string {
		n := Choose(r, f).Walked(Stretch{Size: f.LargestStretch(), Slots: f.slots, Numbered: !f.unnumbered})
		if n < 0 {
			return "walk all"
		}
		return fmt.Sprintf("walk %d", n)
	},
	"window": func(f *fake, r *Request) string {
		n := Choose(r, f).SortWindow(f.LargestStretch())
		if n == 0 {
			return "all rows"
		}
		return fmt.Sprintf("%d rows at a time", n)
	},
	"keyleaf": func(f *fake, r *Request) string {
		if l := KeyLeaf(f, r.PK); l != nil {
			return l.String()
		}
		return "none"
	},
	"turn": func(f *fake, r *Request) string {
		if n := Choose(r, f).Turn(f.passed, f.hits, f.items); n > 0 {
			return fmt.Sprintf("gather up to %d entries", n)
		}
		return "walk on"
	},
	"partition": func(f *fake, r *Request) string { return PartitionOrder(f).String() },
}

// choosesTheSame asserts that a query that isn't explained has the same tree, without figures and alternatives, and
// that the same is counted to choose it.
func choosesTheSame(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	f, r := setUp(t, d)
	plain := Choose(r, f)
	f2, r2 := setUp(t, d)
	r2.Explain = true
	explained := Choose(r2, f2)
	if len(plain.Lost) > 0 || len(f.explained) > 0 || !slices.Equal(f.asked, f2.asked) {
		t.Errorf("%s: %d alternatives, counted for EXPLAIN %v, to choose %v instead of %v", d.Pos, len(plain.Lost),
			f.explained, f.asked, f2.asked)
	}
	explained.Lost = nil
	bare(explained.Root)
	if got, want := plain.Explain(false).String(), explained.Explain(false).String(); got != want {
		t.Errorf("%s: EXPLAIN changes the tree:\n%swithout it:\n%s", d.Pos, want, got)
	}
}

// bare removes the figures of a node and of those below.
func bare(n *Node) {
	n.Figures = nil
	for _, k := range n.Kids {
		bare(k)
	}
}
