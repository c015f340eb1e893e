package tikvkv

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// TestRequests has the requests to the stores that operations of the core make. All keys are in one region.
func TestRequests(t *testing.T) {
	m := newMock(t)
	e, f := m.openFaulty(Options{})
	of, err := core.Open(bg, kv.Checked(e), core.Options{Logger: slog.New(slog.DiscardHandler),
		Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	h := &history{t: t, all: []*core.Engine{of}, ended: map[string]int64{}, shown: map[string]map[int64]int64{}}
	h.make() // numbers are reserved
	only, err := of.CreateContainer(bg, "db", core.ContainerSpec{ID: "only", UniqueKeys: [][]string{{"/v"}},
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := only.Write(bg, core.Write{Kind: core.Create, Doc: parse(t, `{"id":"a","pk":"p","v":2}`)}); err != nil {
		t.Fatal(err)
	}
	c := h.container(0)
	if _, err := c.Read(bg, key("p"), value.StringOf("none")); err == nil { // it follows the catalog from here on
		t.Fatal("an item that is absent was read")
	}
	item := func(id string) []byte { return parse(t, fmt.Sprintf(`{"id":%q,"pk":"p","v":1}`, id)) }
	write := func(kind core.WriteKind) func() error {
		return func() error {
			_, err := c.Write(bg, core.Write{Kind: kind, Doc: item("i")})
			return err
		}
	}
	batch := func(n int, beside func() error) func() error {
		return func() error {
			_, err := c.WithTx(bg, key("p"), func(tx *core.Tx) error {
				id := func(i int) string { return fmt.Sprint("b", i) }
				if beside != nil {
					if err := beside(); err != nil {
						return err
					}
				}
				if err := tx.Fetch(n, func(i int) value.Value { return value.StringOf(id(i)) }); err != nil {
					return err
				}
				for i := range n {
					if _, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: item(id(i))}); err != nil {
						return err
					}
				}
				return nil
			})
			return err
		}
	}
	for _, tc := range []struct {
		name                  string
		do                    func() error
		gets, manys, prewrite int
	}{
		{"create", write(core.Create), 0, 1, 1},
		{"replace", write(core.Replace), 0, 1, 1},
		{"point read", func() error {
			_, err := c.Read(bg, key("p"), value.StringOf("i"))
			return err
		}, 0, 1, 0},
		{"look-up and point read", func() error {
			_, err := h.container(0).Read(bg, key("p"), value.StringOf("i"))
			return err
		}, 1, 1, 0},
		{"create with a unique key", func() error {
			_, err := only.Write(bg, core.Write{Kind: core.Create, Doc: item("i")})
			return err
		}, 1, 1, 1},
		{"20 creates", func() error {
			var ws []core.Write
			for i := range 20 {
				ws = append(ws, core.Write{Kind: core.Create, Doc: item(fmt.Sprint("m", i))})
			}
			for _, o := range c.WriteMany(bg, ws, true) {
				if o.Err != nil {
					return o.Err
				}
			}
			return nil
		}, 0, 1, 1},
		{"batch of 20", batch(20, nil), 0, 2, 1},
		{"the same batch", batch(20, nil), 0, 2, 1},
		{"and a write beside it, which has one of each", batch(20, func() error {
			_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: parse(t, `{"id":"i","pk":"q"}`)})
			return err
		}), 0, 4, 2},
	} {
		f.set(nil)
		if err := tc.do(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		gets, manys := f.requests(tikvrpc.CmdGet), f.requests(tikvrpc.CmdBatchGet)
		if n := f.requests(tikvrpc.CmdPrewrite); gets != tc.gets || manys != tc.manys || n != tc.prewrite {
			t.Errorf("%s: %d requests for a key, %d for several, %d commits; want %d, %d, %d", tc.name, gets, manys, n,
				tc.gets, tc.manys, tc.prewrite)
		}
	}
	if err := of.Close(); err != nil {
		t.Error(err)
	}
}
