package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// An engine may refuse reads. The caller gets Unavailable or Timeout, nothing is written, nothing panics, and the next
// caller is served.
func TestRefusedReads(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 20 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d}`, i, i, i))
	}
	id := value.StringOf("7")
	query := func(q *exec.Query) error {
		r, err := c.Query(bg, q)
		if err != nil {
			return err
		}
		defer r.Close()
		for r.Next() {
		}
		return r.Err()
	}
	ops := map[string]func() error{
		"read": func() error { _, err := c.Read(bg, pk("p7"), id); return err },
		"create": func() error {
			_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"x","pk":"p7"}`)})
			return err
		},
		"replace": func() error {
			_, err := c.Write(bg, core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"7","pk":"p7"}`)})
			return err
		},
		"delete": func() error {
			_, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("p7"), ID: id})
			return err
		},
		"many": func() error {
			return c.WriteMany(bg, []core.Write{{Kind: core.Delete, PK: pk("p7"), ID: id},
				{Kind: core.Delete, PK: pk("p8"), ID: value.StringOf("8")}}, true)[0].Err
		},
		"transaction": func() error {
			_, err := c.WithTx(bg, pk("p7"), func(tx *core.Tx) error { _, err := tx.Read(id); return err })
			return err
		},
		"scan":     func() error { return query(&exec.Query{}) },
		"equality": func() error { return query(eqQuery("n", 7)) },
		"order": func() error {
			return query(&exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("n")}}, Compare: value.CompareCosmos})
		},
		"feed":     func() error { _, err := c.Feed(bg, feed.Scope{}, feed.Start(), 10); return err },
		"count in": func() error { _, _, err := c.CountIn(bg, pk("p7")); return err },
		"check":    func() error { _, err := e.Check(bg); return err },
	}
	for _, tc := range []struct {
		err  error
		code status.Code
	}{
		{kv.ErrUnavailable, status.Unavailable},
		{kv.ErrClosed, status.Unavailable},
		{fmt.Errorf("%w: %w", kv.ErrUnavailable, context.DeadlineExceeded), status.Timeout},
	} {
		for name, op := range ops {
			h.set(func(on *hookSet) { on.refuse = func() error { return tc.err } })
			err := op()
			h.set(func(on *hookSet) { on.refuse = nil })
			if code := status.CodeOf(err); err == nil || code != tc.code {
				t.Errorf("%s, refused with %q: %v", name, tc.err, err)
			}
		}
	}
	if n := len(ids(t, c, &exec.Query{})); n != 20 {
		t.Errorf("%d items are left", n)
	}
	for _, name := range []string{"read", "replace", "scan", "order", "feed"} {
		if err := ops[name](); err != nil {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
}
