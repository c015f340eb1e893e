package core_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/status"
)

func TestDropAndReopen(t *testing.T) {
	dir := t.TempDir()
	open := func() *core.Engine {
		kve, err := pebblekv.Open(dir, pebblekv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := core.Open(bg, kve, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	lsn := lastLSN(c)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	c, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	if r := put(t, c, core.Create, `{"id":"2","pk":"a"}`); r.LSN <= lsn {
		t.Errorf("LSN %d after a restart, %d before", r.LSN, lsn)
	}
	if counted(c) != 2 {
		t.Errorf("count is %d", counted(c))
	}
	if err := e.DropContainer(bg, "db", "c"); err != nil {
		t.Fatal(err)
	}
	_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"3","pk":"a"}`)})
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	c = newContainer(t, e, core.ContainerSpec{})
	if counted(c) != 0 || len(ids(t, c, &exec.Query{})) != 0 {
		t.Error("a new container of the same name has old items")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// A reopened store has the same catalog: names, definitions, and numbers that are never assigned again.
func TestCatalogReopen(t *testing.T) {
	dir := t.TempDir()
	open := func() *core.Engine {
		kve, err := pebblekv.Open(dir, pebblekv.Options{Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		e, err := core.Open(bg, kve, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	ttl := int32(5)
	spec := core.ContainerSpec{ID: "rich", PartitionKey: keyDefs["MultiHash"], IndexingPolicy: []byte(noIndex),
		DefaultTTL: &ttl, UniqueKeys: [][]string{{"/u", "/v/w"}},
		Throughput: core.Throughput{AutoscaleMax: 25000}, Properties: map[string][]byte{"x": {0, 1, 2}},
		Origin: "nosql", ExtendedJSON: true}
	rich := newContainer(t, e, spec)
	gone := newContainer(t, e, core.ContainerSpec{ID: "gone"})
	moved := newContainer(t, e, core.ContainerSpec{ID: "moved"})
	put(t, moved, core.Create, `{"id":"1","pk":"a"}`)
	if _, err := e.RenameContainer(bg, "db", "moved", "there", false); err != nil {
		t.Fatal(err)
	}
	if err := e.DropContainer(bg, "db", "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.CreateDatabase(bg, core.DatabaseSpec{ID: "other", Throughput: core.Throughput{Manual: 400}}); err !=
		nil {
		t.Fatal(err)
	}
	if err := e.DropDatabase(bg, "other"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%+v %s %d %v", *rich.Spec(), rich.ETag(), rich.TS(), partitionsOf(rich))
	dbs := databases(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	defer e.Close()
	again, err := e.Container("db", "rich")
	if err != nil {
		t.Fatal(err)
	}
	again.Spec().DefaultTTL = rich.Spec().DefaultTTL // printed as a pointer
	if got := fmt.Sprintf("%+v %s %d %v", *again.Spec(), again.ETag(), again.TS(), partitionsOf(again)); got != want {
		t.Errorf("reopened\n%s, was\n%s", got, want)
	}
	if again.RID() != rich.RID() || databases(t, e) != dbs {
		t.Errorf("rid %x, was %x; %d databases", again.RID(), rich.RID(), databases(t, e))
	}
	there, err := e.Container("db", "there")
	if err != nil || counted(there) != 1 || there.RID() != moved.RID() {
		t.Errorf("the renamed container: %v", err)
	}
	for _, id := range []string{"gone", "moved"} {
		_, err := e.Container("db", id)
		wantCode(t, err, status.NotFound, 0)
	}
	_, err = e.Container("other", "x")
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	if c := newContainer(t, e, core.ContainerSpec{ID: "gone"}); c.RID() == gone.RID() {
		t.Error("a _rid was given twice")
	}
	clean(t, e)
}

// unowned is an engine that stays open when its user closes it.
type unowned struct{ kv.Engine }

func (unowned) Close() error { return nil }

// Damaged catalog entries are an error and never a panic: at the start, or when the container is first used.
func TestDamagedCatalog(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	newContainer(t, e, core.ContainerSpec{})
	key := keys.AppendMeta(nil, keys.MetaContainer, 0x10000001, "c")
	entry, err := raw.Get(bg, nil, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(string) string{
		"cut":            func(s string) string { return s[:len(s)/2] },
		"format":         func(s string) string { return "\x09" + s[1:] },
		"front alone":    func(s string) string { return s[:18] },
		"cut in front":   func(s string) string { return s[:10] },
		"other number":   func(s string) string { return s[:1] + "\x80\x00\x00\x07" + s[5:] },
		"other one's id": func(s string) string { return strings.Replace(s, `"id":"c"`, `"id":"d"`, 1) },
		"no slots": func(s string) string {
			return regexp.MustCompile(`"slots":\[[^]]*\]`).ReplaceAllString(s, `"slots":[]`)
		},
		"no partitions": func(s string) string {
			return regexp.MustCompile(`"partitions":\[[^]]*\]`).ReplaceAllString(s, `"partitions":null`)
		},
		"slots reversed": func(s string) string { return strings.Replace(s, `{"id":1}`, `{"min":"/w==","id":1}`, 1) },
		"first slot":     func(s string) string { return strings.Replace(s, `"first":0`, `"first":7`, 1) },
		"no path":        func(s string) string { return strings.Replace(s, `"/pk"`, `"pk"`, 1) },
		"no database":    func(s string) string { return regexp.MustCompile(`"db":\d+`).ReplaceAllString(s, `"db":3`) },
	} {
		bad := damage(string(entry))
		if bad == string(entry) {
			t.Fatalf("%s changed nothing: %q", name, entry)
		}
		var b kv.Batch
		b.Put(key, []byte(bad))
		if _, err := raw.Write(bg, &b, nil); err != nil {
			t.Fatal(err)
		}
		again, err := core.Open(bg, &unowned{raw}, core.Options{})
		if err == nil {
			_, err = again.Container("db", "c")
			if found, cerr := again.Check(bg); cerr != nil || len(found) == 0 {
				t.Errorf("%s: a check finds %v, %v", name, found, cerr)
			}
			if cerr := again.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		if !status.Is(err, status.Corruption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e.Reap(bg)
}

// TestRedefineIsRepeated: a change of a definition that was decided while another one was made is decided again. A drop
// in the meantime ends it.
func TestRedefineIsRepeated(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		newContainer(t, e, core.ContainerSpec{})
		change := func(other func() error) (decided int, c *core.Container, err error) {
			c, err = e.Redefine(bg, "db", "c", func(d core.Definition) (core.ContainerSpec, error) {
				s := d.Spec().Clone()
				s.Throughput.Manual = 500
				if decided++; decided > 1 {
					return s, nil
				}
				return s, other()
			})
			return decided, c, err
		}
		decided, c, err := change(func() error {
			ttl := int32(60)
			_, err := e.Redefine(bg, "db", "c", func(d core.Definition) (core.ContainerSpec, error) {
				s := d.Spec().Clone()
				s.DefaultTTL = &ttl
				return s, nil
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if s := c.Spec(); decided != 2 || s.Throughput.Manual != 500 || s.DefaultTTL == nil {
			t.Errorf("decided %d times: %+v", decided, s)
		}
		_, _, err = change(func() error { return e.DropContainer(bg, "db", "c") })
		if !status.Is(err, status.NotFound) {
			t.Errorf("after a drop: %v", err)
		}
	})
}
