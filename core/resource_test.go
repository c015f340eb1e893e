package core_test

import (
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
)

// openDir opens the store of a directory.
func openDir(t *testing.T, dir string) *core.Engine {
	t.Helper()
	k, err := pebblekv.Open(dir, pebblekv.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := core.Open(bg, kv.Checked(k), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestResources(t *testing.T) {
	dir := t.TempDir()
	open := func() *core.Engine { return openDir(t, dir) }
	e := open()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := e.CreateResource(bg, "db", core.Resource{Kind: core.User, ID: "u"})
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	_, err = e.EnsureDatabase(bg, "db")
	ok(err)
	u, err := e.CreateResource(bg, "db", core.Resource{Kind: core.User, ID: "u", Body: []byte("x")})
	ok(err)
	_, err = e.CreateResource(bg, "db", core.Resource{Kind: core.User, ID: "u"})
	wantCode(t, err, status.Conflict, 0)
	_, err = e.CreateResource(bg, "db", core.Resource{Kind: core.Permission, Parent: 99, ID: "p"})
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	_, err = e.CreateResource(bg, "db", core.Resource{Kind: core.Permission, Parent: u.Num, ID: "p", Claim: "a"})
	ok(err)
	_, err = e.CreateResource(bg, "db", core.Resource{Kind: core.Permission, Parent: u.Num, ID: "q", Claim: "a"})
	wantCode(t, err, status.Conflict, 0)
	q, err := e.CreateResource(bg, "db", core.Resource{Kind: core.Permission, Parent: u.Num, ID: "q", Claim: "b"})
	ok(err)
	_, err = e.ReplaceResource(bg, "db", "q",
		core.Resource{Kind: core.Permission, Parent: u.Num, ID: "q", Claim: "a"}, nil)
	wantCode(t, err, status.Conflict, 0)
	q2, err := e.ReplaceResource(bg, "db", "q",
		core.Resource{Kind: core.Permission, Parent: u.Num, ID: "r", Claim: "b"}, nil)
	ok(err)
	if core.ResourceETag(q) == core.ResourceETag(q2) || q.Num != q2.Num || q.RID()[4]&0x80 != 0 {
		t.Errorf("replaced %+v by %+v", q, q2)
	}
	// A renamed user keeps its permissions. Everything exists after a restart.
	_, err = e.ReplaceResource(bg, "db", "u", core.Resource{Kind: core.User, ID: "v", Body: []byte("y")}, nil)
	ok(err)
	ok(e.Close())
	e = open()
	v, err := e.Resource("db", core.User, 0, "v")
	ok(err)
	if v.Num != u.Num || string(v.Body) != "y" {
		t.Errorf("after a restart %+v", v)
	}
	_, err = e.Resource("db", core.User, 0, "u")
	wantCode(t, err, status.NotFound, 0)
	ps, err := e.Resources(bg, "db", core.Permission, v.Num)
	ok(err)
	if len(ps) != 2 || ps[0].ID != "p" || ps[1].ID != "r" {
		t.Errorf("permissions %v", ps)
	}
	// Dropping a user drops its permissions. Dropping a database drops everything.
	refuse := status.New(status.PreconditionFailed, "")
	if err := e.DropResource(bg, "db", core.User, 0, "v", func(*core.Resource) error { return refuse }); err != refuse {
		t.Errorf("a failed check: %v", err)
	}
	ok(e.DropResource(bg, "db", core.User, 0, "v", nil))
	if ps, _ = e.Resources(bg, "db", core.Permission, v.Num); len(ps) != 0 {
		t.Errorf("permissions of a dropped user: %v", ps)
	}
	k, err := e.CreateResource(bg, "db", core.Resource{Kind: core.ClientKey, ID: "k"})
	ok(err)
	if k.Num <= q.Num {
		t.Errorf("number %d is used again", k.Num)
	}
	ok(e.DropDatabase(bg, "db"))
	_, err = e.EnsureDatabase(bg, "db")
	ok(err)
	ks, err := e.Resources(bg, "db", core.ClientKey, 0)
	ok(err)
	ok(e.Close())
	if len(ks) != 0 {
		t.Errorf("keys of a dropped database: %v", ks)
	}
	e = open()
	ok(e.Close())
}

// TestPrograms: programs belong to a container. They are limited in number, survive a restart and a rename of the
// container, and are dropped with it.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	open := func() *core.Engine { return openDir(t, dir) }
	e := open()
	a := newContainer(t, e, core.ContainerSpec{ID: "a"})
	b := newContainer(t, e, core.ContainerSpec{ID: "b"})
	program := func(c *core.Container, kind core.ResourceKind, id string) core.Resource {
		return core.Resource{Kind: kind, Parent: c.Num(), ID: id, Body: []byte(id), Most: 2}
	}
	_, err := e.CreateResource(bg, "db", core.Resource{Kind: core.Trigger, Parent: 7, ID: "x"})
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	for _, c := range []*core.Container{a, b} {
		for _, kind := range []core.ResourceKind{core.Procedure, core.Trigger, core.Function} {
			for _, id := range []string{"z", "y"} {
				if _, err := e.CreateResource(bg, "db", program(c, kind, id)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := e.CreateResource(bg, "db", program(c, kind, "x"))
			wantCode(t, err, status.Forbidden, 0)
			_, err = e.CreateResource(bg, "db", program(c, kind, "y"))
			wantCode(t, err, status.Conflict, 0)
		}
	}
	if err := e.DropResource(bg, "db", core.Trigger, a.Num(), "z", nil); err != nil {
		t.Fatal(err)
	}
	if err := e.DropContainer(bg, "db", "b"); err != nil {
		t.Fatal(err)
	}
	count := func(c *core.Container) (n int) {
		for _, kind := range []core.ResourceKind{core.Procedure, core.Trigger, core.Function} {
			all, err := e.Resources(bg, "db", kind, c.Num())
			if err != nil {
				t.Fatal(err)
			}
			n += len(all)
		}
		return n
	}
	for range 2 {
		if n, m := count(a), count(b); n != 5 || m != 0 {
			t.Errorf("there are %d and %d programs, want 5 and 0", n, m)
		}
		all, err := e.Resources(bg, "db", core.Procedure, a.Num())
		if err != nil || all[0].ID != "z" || all[1].ID != "y" {
			t.Errorf("procedures are %v, %v; want them in the order of creation", all, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open()
	}
	_ = e.Close()
}
