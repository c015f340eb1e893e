package core_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// refusing is an engine on a disk that may be full or read-only.
type refusing struct {
	kv.Engine
	state atomic.Uint32 // kv.Well, kv.Full or kv.ReadOnly
	keeps atomic.Bool   // dropped ranges are kept, as after a crash
}

func (e *refusing) set(s kv.State) { e.state.Store(uint32(s)) }

func (e *refusing) Health() kv.Health { return kv.Health{State: kv.State(e.state.Load())} }

func (e *refusing) refuse(frees bool) error {
	switch e.Health().State {
	case kv.Full:
		if !frees {
			return &kv.Refusal{Kind: kv.ErrFull, Sentence: "The disk is full."}
		}
	case kv.ReadOnly:
		return &kv.Refusal{Kind: kv.ErrUnavailable, Sentence: "The disk is read-only."}
	}
	return nil
}

func (e *refusing) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if err := e.refuse(b.Frees); err != nil {
		return nil, err
	}
	return e.Engine.Write(ctx, b, pre)
}

func (e *refusing) DropRange(ctx context.Context, lo, hi []byte) error {
	if err := e.refuse(true); err != nil {
		return err
	}
	if e.keeps.Load() {
		return nil
	}
	return e.Engine.DropRange(ctx, lo, hi)
}

// On a full disk, writes that add data are refused with the reason. Writes that remove data, reads and queries
// continue.
func TestFullStore(t *testing.T) {
	kve := &refusing{Engine: kv.Checked(memkv.New())}
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, err := core.Open(bg, kve, core.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ttl := int32(-1)
	c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &ttl})
	other := newContainer(t, e, core.ContainerSpec{ID: "other"})
	for _, d := range []string{`{"id":"1","pk":"a"}`, `{"id":"2","pk":"a"}`, `{"id":"3","pk":"a"}`,
		`{"id":"4","pk":"b"}`,
		`{"id":"5","pk":"b"}`, `{"id":"6","pk":"b"}`, `{"id":"7","pk":"b","ttl":5}`, `{"id":"8","pk":"b"}`} {
		put(t, c, core.Create, d)
	}
	put(t, other, core.Create, `{"id":"1","pk":"a"}`)
	kve.set(kv.Full)

	write := func(kind core.WriteKind, json string) error {
		_, err := c.Write(bg, core.Write{Kind: kind, Doc: mustDoc(t, json)})
		return err
	}
	remove := func(p, id string) core.Write { return core.Write{Kind: core.Delete, PK: pk(p), ID: value.StringOf(id)} }
	_, inTx := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
		w := remove("a", "1")
		if _, err := tx.Write(&w); err != nil {
			return err
		}
		_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"9","pk":"a"}`)})
		return err
	})
	_, dbErr := e.CreateDatabase(bg, core.DatabaseSpec{ID: "more"})
	_, cErr := e.CreateContainer(bg, "db",
		core.ContainerSpec{ID: "more", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	for name, err := range map[string]error{
		"create": write(core.Create, `{"id":"9","pk":"a"}`), "upsert": write(core.Upsert, `{"id":"1","pk":"a"}`),
		"replace": write(core.Replace, `{"id":"1","pk":"a"}`), "transaction": inTx, "database": dbErr,
		"container": cErr,
	} {
		if !status.Is(err, status.StoreFull) || !strings.Contains(status.From(err).Msg, "The disk is full.") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if _, err := c.Write(bg, remove("a", "1")); err != nil {
		t.Error("delete:", err)
	}
	_, err = c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
		w := remove("a", "2")
		_, err := tx.Write(&w)
		return err
	})
	if err != nil {
		t.Error("a transaction that deletes:", err)
	}
	out := c.WriteMany(bg, []core.Write{remove("b", "4"), {Kind: core.Create, Doc: mustDoc(t, `{"id":"9","pk":"b"}`)},
		remove("b", "5")}, false)
	if out[0].Err != nil || !status.Is(out[1].Err, status.StoreFull) || out[2].Err != nil {
		t.Errorf("writes of both kinds: %v", out)
	}
	for _, o := range c.WriteMany(bg, []core.Write{remove("b", "6"), remove("a", "3")}, false) {
		if o.Err != nil {
			t.Error("deletes:", o.Err)
		}
	}
	clk.Advance(time.Minute)
	if n := e.Reap(bg); n != 1 {
		t.Errorf("%d items were reaped", n)
	}
	if got := ids(t, c, &exec.Query{}); !slices.Equal(got, []string{"8"}) || counted(c) != 1 {
		t.Errorf("%v and %d items are left", got, counted(c))
	}
	if err := e.DropContainer(bg, "db", "other"); err != nil {
		t.Error("drop of a container:", err)
	}
	kve.set(kv.Well)
	put(t, c, core.Create, `{"id":"9","pk":"a"}`)
	kve.set(kv.Full)
	if err := e.DropDatabase(bg, "db"); err != nil {
		t.Error("drop of a database:", err)
	}
	kve.set(kv.Well)
	if p, err := e.Check(bg); err != nil || len(p) > 0 {
		t.Errorf("check: %v %v", err, p)
	}
}

// A store that accepts no writes can be opened, whatever work a crash has left.
func TestOpenReadOnlyStore(t *testing.T) {
	kve := &refusing{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, &unclosed{kve}, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	put(t, newContainer(t, e, core.ContainerSpec{ID: "gone"}), core.Create, `{"id":"1","pk":"a"}`)
	kve.keeps.Store(true)
	if err := e.DropContainer(bg, "db", "gone"); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()

	kve.set(kv.ReadOnly)
	e, err = core.Open(bg, kve, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(bg, pk("a"), value.StringOf("1")); err != nil {
		t.Error(err)
	}
	if got := ids(t, c, &exec.Query{}); len(got) != 1 {
		t.Errorf("a query gives %v", got)
	}
	_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)})
	if !status.Is(err, status.Unavailable) || !strings.Contains(status.From(err).Msg, "The disk is read-only.") {
		t.Errorf("a write: %v", err)
	}
	if h := e.Health(); h.State != kv.ReadOnly {
		t.Errorf("health %+v", h)
	}
}

// unclosed is an engine that stays open for its next user.
type unclosed struct{ *refusing }

func (unclosed) Close() error { return nil }
