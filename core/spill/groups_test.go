package spill

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
)

// tally is a key and how often it was met.
type tally struct{ key, n uint32 }

var tallies = &Keyed[tally]{
	Compare: func(a, b *tally) int { return cmp.Compare(a.key, b.key) },
	Append: func(dst []byte, t *tally) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, t.key), t.n)
	},
	Decode: func(b []byte, t *tally) error {
		if len(b) != 8 {
			return damaged("a tally of %d bytes", len(b))
		}
		t.key, t.n = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		return nil
	},
	Merge: func(a, b *tally) error {
		a.n += b.n
		return nil
	},
}

// count adds one to the tally of a key. Several keys share a hash.
func count(g *Groups[tally], key uint32) {
	hash := uint64(key / 3)
	for x := g.Find(hash); x != nil; x = x.Next() {
		if x.State.key == key {
			x.State.n++
			return
		}
	}
	g.Add(hash).State = tally{key, 1}
}

// Groups are the same, each once with the place of its first row, whether they stay in memory or are written to any
// number of runs.
func TestGroupsAreMerged(t *testing.T) {
	s := space(t, Options{})
	b := budget.New(64<<20, 0)
	for _, every := range []int{0, 5000, 1000, 100, 7} {
		t.Run(fmt.Sprint("a run for each ", every), func(t *testing.T) {
			acct := b.Open("group")
			defer acct.Close()
			g := NewGroups(s, acct, tallies)
			defer g.Close()
			rnd := rand.New(rand.NewPCG(3, 4))
			want, order := map[uint32]uint32{}, []uint32(nil)
			for i := range 5000 {
				key := rnd.Uint32N(700)
				if want[key]++; want[key] == 1 {
					order = append(order, key)
				}
				count(g, key)
				if every > 0 && i%every == every-1 {
					if err := g.Write(bg); err != nil {
						t.Fatal(err)
					}
				}
			}
			var got []*Group[tally]
			if got = g.List(); every > 0 {
				rows, err := g.Merge(bg)
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				if got, err = read(rows); err != nil {
					t.Fatal(err)
				}
				if !slices.IsSortedFunc(got, tallies.compare) {
					t.Error("they are not in the order of hashes")
				}
				slices.SortFunc(got, func(a, b *Group[tally]) int { return cmp.Compare(a.Place, b.Place) })
			}
			if g.Written() != (every > 0) || len(got) != len(order) {
				t.Fatalf("%d groups, want %d", len(got), len(order))
			}
			for i, x := range got {
				if x.State.key != order[i] || x.State.n != want[order[i]] {
					t.Errorf("group %d is %v, want %d times %d", i, x.State, want[order[i]], order[i])
				}
			}
		})
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

// After Reset groups are found from the beginning, whatever was there before.
func TestGroupsAreReset(t *testing.T) {
	g := NewGroups[tally](nil, nil, tallies)
	for _, n := range []uint32{3, 1000, 0, 5, 70, 2} {
		for range 2 {
			for key := range n {
				count(g, key)
			}
		}
		if uint32(len(g.List())) != n || g.Found() != int64(n) {
			t.Errorf("%d groups, %d found, want %d", len(g.List()), g.Found(), n)
		}
		for i, x := range g.List() {
			if x.Place != int64(i) || x.State != (tally{uint32(i), 2}) {
				t.Errorf("group %d of %d is %+v", i, n, x)
			}
		}
		if g.Reset(); g.Find(0) != nil || len(g.List()) != 0 {
			t.Error("groups are left")
		}
	}
}

// A group that is cut is damage, not another group.
func TestDamagedGroups(t *testing.T) {
	c := tallies.Sorted(tallies.compare)
	whole := c.Append(nil, &Group[tally]{Hash: 5, Place: 300, State: tally{1, 2}})
	if x, err := c.Decode(whole); err != nil || x.Hash != 5 || x.Place != 300 || x.State != (tally{1, 2}) {
		t.Errorf("%+v, %v", x, err)
	}
	for n := range whole {
		if _, err := c.Decode(whole[:n]); !status.Is(err, status.Corruption) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}
