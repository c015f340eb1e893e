package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Writes of an eager transaction, one after the other: "create 1 x" writes item 1 with the unique value x, "!" before
// it means that it is a conflict. Items a and b have the values a and b, and e, which has expired, has e.
func TestEagerTx(t *testing.T) {
	ttl, second := int32(-1), int64(1)
	clk := clock.Fake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		for i, writes := range []string{
			"!create 1 a, create 1 x",
			"create 1 x, !create 2 x, create 2 y",
			"delete a, create 1 a, !create 2 a",
			"replace a x, create 1 a",
			"replace a x, !create 1 x",
			"replace a x, replace a a, !create 1 a, create 2 x",
			"replace a a, upsert a a, !upsert b a",
			"!replace a b, replace a c, replace b a, replace a b",
			"create 1 x, delete 1, create 2 x",
			"create 1 e, !create 2 e",
			"!create 1 a, !upsert 1 b, !replace b a",
		} {
			c := newContainer(t, e, core.ContainerSpec{ID: fmt.Sprint("c", i), DefaultTTL: &ttl,
				UniqueKeys: [][]string{{"/u"}}})
			put(t, c, core.Create, `{"id":"a","pk":"p","u":"a"}`)
			put(t, c, core.Create, `{"id":"b","pk":"p","u":"b"}`)
			put(t, c, core.Create, `{"id":"other","pk":"q","u":"x"}`)
			put(t, c, core.Create, fmt.Sprintf(`{"id":"e","pk":"p","u":"e","ttl":%d}`, second))
			clk.Advance(2 * time.Second)
			_, err := c.WithTx(bg, pk("p"), func(tx *core.Tx) error {
				tx.Eager()
				for _, text := range strings.Split(writes, ", ") {
					rest, conflict := strings.CutPrefix(text, "!")
					w := writeOf(t, rest)
					if _, err := tx.Write(&w); status.Is(err, status.Conflict) != conflict {
						t.Errorf("%s: %s: %v", writes, text, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", writes, err)
			}
		}
	})
}

// writeOf reads a write: kind, id, unique value.
func writeOf(t *testing.T, text string) core.Write {
	f := strings.Fields(text)
	kinds := map[string]core.WriteKind{"create": core.Create, "replace": core.Replace, "upsert": core.Upsert,
		"delete": core.Delete}
	if f[0] == "delete" {
		return core.Write{Kind: core.Delete, ID: value.StringOf(f[1])}
	}
	return core.Write{Kind: kinds[f[0]], Doc: mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":"p","u":%q}`, f[1], f[2]))}
}

// The commit decides. When another writer frees or takes a value after the snapshot, the transaction runs again.
func TestEagerTxLosesARace(t *testing.T) {
	for _, tc := range []struct {
		meanwhile core.WriteKind
		doc       string
		want      string // whether item 1 with the value a, and item 2 with y, were accepted, in each run
	}{
		{core.Replace, `{"id":"a","pk":"p","u":"x"}`, "[false true][true true]"},
		{core.Create, `{"id":"b","pk":"p","u":"y"}`, "[false true][false false]"},
		{core.Create, `{"id":"b","pk":"p","u":"z"}`, "[false true]"},
	} {
		onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
			c := newContainer(t, e, core.ContainerSpec{UniqueKeys: [][]string{{"/u"}}})
			put(t, c, core.Create, `{"id":"a","pk":"p","u":"a"}`)
			got := ""
			_, err := c.WithTx(bg, pk("p"), func(tx *core.Tx) error {
				tx.Eager()
				var accepted []bool
				for _, text := range []string{"create 1 a", "create 2 y"} {
					w := writeOf(t, text)
					_, err := tx.Write(&w)
					accepted = append(accepted, err == nil)
				}
				if got += fmt.Sprint(accepted); !strings.Contains(got, "][") {
					put(t, c, tc.meanwhile, tc.doc)
				}
				return nil
			})
			if err != nil || got != tc.want {
				t.Errorf("%s meanwhile: %s, %v, want %s", tc.doc, got, err, tc.want)
			}
		})
	}
}
