package core_test

import (
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
)

func TestResources(t *testing.T) {
	dir := t.TempDir()
	open := func() *core.Engine {
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
	// A renamed user keeps its permissions; all of it is there after a restart.
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
	ps, err := e.Resources("db", core.Permission, v.Num)
	ok(err)
	if len(ps) != 2 || ps[0].ID != "p" || ps[1].ID != "r" {
		t.Errorf("permissions %v", ps)
	}
	// With a user its permissions go, with a database everything.
	refuse := status.New(status.PreconditionFailed, "")
	if err := e.DropResource(bg, "db", core.User, 0, "v", func(*core.Resource) error { return refuse }); err != refuse {
		t.Errorf("a failed check: %v", err)
	}
	ok(e.DropResource(bg, "db", core.User, 0, "v", nil))
	if ps, _ = e.Resources("db", core.Permission, v.Num); len(ps) != 0 {
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
	ks, err := e.Resources("db", core.ClientKey, 0)
	ok(err)
	ok(e.Close())
	if len(ks) != 0 {
		t.Errorf("keys of a dropped database: %v", ks)
	}
	e = open()
	ok(e.Close())
}
