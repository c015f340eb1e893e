package core_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// A request that has found its slot before a split reads it after the split, when the slot's keys are removed. It gets
// what it would have got without the split.
func TestRequestsMeetASplit(t *testing.T) {
	there := core.Write{Kind: core.Replace, PK: pk("a"), ID: value.StringOf("1")}
	create, other := there, there
	create.Kind = core.Create
	for name, request := range map[string]struct {
		reads string // the function whose first read comes after the split
		do    func(c *core.Container, d func(string) doc.Doc) error
		want  status.Code
	}{
		"read": {"(*Container).stored", func(c *core.Container, _ func(string) doc.Doc) error {
			_, err := c.Read(bg, pk("a"), value.StringOf("1"))
			return err
		}, 0},
		"replace": {"(*Container).readOld", func(c *core.Container, d func(string) doc.Doc) error {
			w := there
			w.Doc = d(`{"id":"1","pk":"a","n":2}`)
			_, err := c.Write(bg, w)
			return err
		}, 0},
		"create": {"(*Container).readOld", func(c *core.Container, d func(string) doc.Doc) error {
			w := create
			w.Doc = d(`{"id":"1","pk":"a","n":2}`)
			_, err := c.Write(bg, w)
			return err
		}, status.Conflict},
		"keep": {"(*Container).readOld", func(c *core.Container, _ func(string) doc.Doc) error {
			w := there
			w.Kind, w.Update = core.Update, func(old *core.Item) (core.Change, error) {
				return core.Change{Keep: true}, nil
			}
			res, err := c.Write(bg, w)
			if err == nil && res.Item == nil {
				return status.New(status.NotFound, "no item")
			}
			return err
		}, 0},
		"many": {"(*Container).readOld", func(c *core.Container, d func(string) doc.Doc) error {
			w, o := there, other
			w.Doc, o.Doc, o.ID = d(`{"id":"1","pk":"a","n":2}`), d(`{"id":"2","pk":"a","n":2}`), value.StringOf("2")
			for _, out := range c.WriteMany(bg, []core.Write{w, o}, true) {
				if out.Err != nil {
					return out.Err
				}
			}
			return nil
		}, 0},
		"transaction": {"(*Tx).run", func(c *core.Container, _ func(string) doc.Doc) error {
			_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
				_, err := tx.Read(value.StringOf("1"))
				return err
			})
			return err
		}, 0},
		"query": {"(*Container).View", func(c *core.Container, _ func(string) doc.Doc) error {
			if n := len(content(t, c)); n != 2 {
				return status.New(status.NotFound, "%d items", n)
			}
			return nil
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e, h := hooked(t, core.Options{MinSlots: 1})
			c := newContainer(t, e, core.ContainerSpec{})
			put(t, c, core.Create, `{"id":"1","pk":"a","n":1}`)
			put(t, c, core.Create, `{"id":"2","pk":"a","n":1}`)
			var split atomic.Bool
			h.set(func(s *hookSet) {
				s.refuse = func() error {
					if !calledBy(request.reads) || calledBy("makeIDFilter") || !split.CompareAndSwap(false, true) {
						return nil
					}
					if err := c.SplitSlot(bg, []byte{0x20}); err != nil {
						t.Error(err)
					}
					for end := time.Now().Add(10 * time.Second); e.DropsLeft() > 0 && time.Now().Before(end); {
						time.Sleep(100 * time.Microsecond)
					}
					return nil
				}
			})
			err := request.do(c, func(text string) doc.Doc { return mustDoc(t, text) })
			if request.want == 0 && err != nil || request.want != 0 && !status.Is(err, request.want) {
				t.Errorf("%v", err)
			}
			if !split.Load() {
				t.Error("the request has not met the split")
			}
		})
	}
}

// Median divides the bytes of a range in about two halves, at a logical partition.
func TestMedian(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	onEngines(t, core.Options{MinSlots: 4}, func(t *testing.T, e *core.Engine) {
		for id, paths := range map[string][]string{"byid": {"/id"}, "bykey": {"/pk"}, "levels": {"/t", "/pk"}} {
			c := newContainer(t, e, core.ContainerSpec{ID: id, PartitionKey: core.PartitionKeyDef{Paths: paths}})
			if _, ok, err := c.Median(bg, nil, nil); ok || err != nil {
				t.Errorf("%s: an empty container has a median: %v", id, err)
			}
			put(t, c, core.Create, `{"id":"first","pk":"p0","t":1}`)
			if _, ok, err := c.Median(bg, nil, nil); ok || err != nil {
				t.Errorf("%s: one logical partition has a median: %v", id, err)
			}
			// a few partitions are much larger than the others
			putMany(t, c, 2000, func(i int) string {
				return fmt.Sprintf(`{"id":"%d","pk":"p%d","t":1,"pad":"%0*d"}`, i, i%500, 10+i%500/5*5, i)
			})
			at, ok, err := c.Median(bg, nil, nil)
			if err != nil || !ok {
				t.Fatal(id, ok, err)
			}
			if err := c.SplitSlot(bg, at); err != nil {
				t.Fatal(err)
			}
			left, right := bytesAround(t, c, at)
			if whole := left + right; left < whole*47/100 || right < whole*47/100 {
				t.Errorf("%s: %d bytes of %d are before the median, and %d behind it", id, left, whole, right)
			}
			// of a part of a slot too
			inner, ok, err := c.Median(bg, []byte{0x02}, []byte{0x08})
			if err != nil || !ok || string(inner) <= "\x02" || string(inner) >= "\x08" {
				if id != "levels" {
					t.Errorf("%s: the median of a part is %x, %v, %v", id, inner, ok, err)
				}
			}
		}
	})
}

// bytesAround returns the bytes of the items before and behind a placement.
func bytesAround(t testing.TB, c *core.Container, at []byte) (left, right int64) {
	t.Helper()
	kind := epk.V2
	if len(c.KeyPaths()) > 1 {
		kind = epk.MultiHash
	}
	r, err := c.Query(bg, &exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for r.Next() {
		n := int64(len(r.Item().Doc) + 80) // about what the key takes
		if bytes.Compare(epk.Place(nil, kind, r.Item().PK()), at) < 0 {
			left += n
		} else {
			right += n
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return left, right
}
