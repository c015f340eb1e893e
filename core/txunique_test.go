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

// Writes of an eager transaction, one after the other: "create 1 x" writes item 1 with the unique value x, "!" before it
// means that it is a conflict. Items a and b have the values a and b, and e, which has expired, has e.
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

// The commit decides: another writer takes the value after the snapshot, and the transaction finds it in its next run.
func TestEagerTxLosesARace(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{UniqueKeys: [][]string{{"/u"}}})
		put(t, c, core.Create, `{"id":"a","pk":"p","u":"a"}`)
		var seen []bool
		_, err := c.WithTx(bg, pk("p"), func(tx *core.Tx) error {
			tx.Eager()
			w := writeOf(t, "create 1 a")
			_, err := tx.Write(&w)
			if seen = append(seen, err == nil); len(seen) == 1 {
				put(t, c, core.Replace, `{"id":"a","pk":"p","u":"x"}`) // frees what the transaction saw as taken
			}
			w = writeOf(t, "create 2 y")
			_, err = tx.Write(&w)
			return err
		})
		if err != nil || fmt.Sprint(seen) != "[false true]" {
			t.Errorf("accepted %v, %v", seen, err)
		}
	})
}
