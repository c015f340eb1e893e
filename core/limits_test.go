package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// A logical partition at its limit refuses only what would make it larger.
func TestLogicalPartitionLimit(t *testing.T) {
	onEngines(t, core.Options{MaxLogicalPartition: 2000}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		text := func(id string, n int) string {
			return fmt.Sprintf(`{"id":%q,"pk":"a","s":%q}`, id, strings.Repeat("x", n))
		}
		put(t, c, core.Create, text("1", 800))
		put(t, c, core.Create, text("2", 800))
		full := func(kind core.WriteKind, doc string) {
			t.Helper()
			_, err := c.Write(bg, core.Write{Kind: kind, Doc: mustDoc(t, doc)})
			wantCode(t, err, status.Forbidden, status.SubPartitionKeyFull)
		}
		full(core.Create, text("3", 800))
		full(core.Replace, text("1", 1600))
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			for i := range 3 {
				if _, err := tx.Write(&core.Write{
					Kind: core.Create, Doc: mustDoc(t, text(fmt.Sprintf("t%d", i), 100))}); err != nil {
					return err
				}
			}
			return nil
		})
		wantCode(t, err, status.Forbidden, status.SubPartitionKeyFull)
		if counted(c) != 2 {
			t.Errorf("count is %d", counted(c))
		}
		put(t, c, core.Create, `{"id":"3","pk":"b"}`)            // another logical partition
		put(t, c, core.Replace, text("1", 700))                  // smaller
		put(t, c, core.Create, text("4", 0))                     // fits now
		_, err = c.WithTx(bg, pk("a"), func(tx *core.Tx) error { // the transaction frees the space that it needs
			if _, err := tx.Write(&core.Write{Kind: core.Delete, ID: value.StringOf("2")}); err != nil {
				return err
			}
			_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, text("5", 700))})
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// An item above the size limit, and an identity above the key limit, are refused before anything is written.
func TestItemLimits(t *testing.T) {
	onEngines(t, core.Options{MaxItem: 10_000}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		large := mustDoc(t, fmt.Sprintf(`{"id":"1","pk":"a","s":%q}`, strings.Repeat("x", 10_000)))
		for _, kind := range []core.WriteKind{core.Create, core.Upsert} {
			_, err := c.Write(bg, core.Write{Kind: kind, Doc: large})
			wantCode(t, err, status.TooLarge, 0)
		}
		put(t, c, core.Create, `{"id":"1","pk":"a"}`)
		_, err := c.Write(bg, core.Write{
			Kind: core.Update, PK: pk("a"), ID: value.StringOf("1"), Update: func(*core.Item) (core.Change, error) {
				return core.Change{Doc: large}, nil
			}})
		wantCode(t, err, status.TooLarge, 0)
		_, err = c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			_, err := tx.Write(&core.Write{Kind: core.Replace, Doc: large})
			return err
		})
		wantCode(t, err, status.TooLarge, 0)
		for _, doc := range []string{fmt.Sprintf(`{"id":%q,"pk":"a"}`, strings.Repeat("i", 3200)),
			fmt.Sprintf(`{"id":"1","pk":%q}`, strings.Repeat("k", 3200))} {
			_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, doc)})
			wantCode(t, err, status.BadRequest, 0)
		}
		_, err = c.Read(bg, pk(strings.Repeat("k", 3200)), value.StringOf("1"))
		wantCode(t, err, status.BadRequest, 0)
		put(t, c, core.Create, fmt.Sprintf(`{"id":%q,"pk":"a","v":[%q]}`, strings.Repeat("i", 3000),
			strings.Repeat("v", 1000)))
		if counted(c) != 2 {
			t.Errorf("count is %d", counted(c))
		}
	})
}

// A document with more than 5,000 values is found once by each of its paths.
func TestManyTerms(t *testing.T) {
	race.Alone(t)
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		var b strings.Builder
		b.WriteString(`{"id":"big","pk":"a","n":1,"v":[`)
		for i := range 6000 {
			fmt.Fprintf(&b, "%d,", i)
		}
		b.WriteString(`0],"late":7}`)
		put(t, c, core.Create, b.String())
		for i := range 50 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"a","n":%d,"v":[%d],"late":%d}`, i, i, i, i))
		}
		for name, q := range manyTermsQueries() {
			n := 0
			for _, id := range paged(t, c, q, 3) {
				if id == "big" {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s: the item came %d times", name, n)
			}
		}
	})
}

// Invalid definitions are refused, and nothing is created.
func TestBadDefinitions(t *testing.T) {
	e, _ := hooked(t, core.Options{})
	if _, err := e.EnsureDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	one := core.PartitionKeyDef{Paths: []string{"/pk"}}
	zero := int32(0)
	for name, spec := range map[string]core.ContainerSpec{
		"no id":            {PartitionKey: one},
		"long id":          {ID: strings.Repeat("x", 5000), PartitionKey: one},
		"no key":           {ID: "c"},
		"bad path":         {ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"pk"}}},
		"empty segment":    {ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/a//b"}}},
		"four paths":       {ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/a", "/b", "/c", "/d"}}},
		"hash of two":      {ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/a", "/b"}, Kind: "Hash"}},
		"unknown kind":     {ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/a"}, Kind: "Range"}},
		"unknown version":  {ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/a"}, Version: 3}},
		"ttl of 0":         {ID: "c", PartitionKey: one, DefaultTTL: &zero},
		"policy":           {ID: "c", PartitionKey: one, IndexingPolicy: []byte(`{`)},
		"policy path":      {ID: "c", PartitionKey: one, IndexingPolicy: []byte(`{"includedPaths":[{"path":"/a"}]}`)},
		"unique path":      {ID: "c", PartitionKey: one, UniqueKeys: [][]string{{"a"}}},
		"no throughput":    {ID: "c", PartitionKey: one, Throughput: core.Throughput{Manual: -5}},
		"endless capacity": {ID: "c", PartitionKey: one, Throughput: core.Throughput{Manual: 1 << 40}},
	} {
		if _, err := e.CreateContainer(bg, "db", spec); !status.Is(err, status.BadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if cs, err := e.Containers("db"); err != nil || len(cs) != 0 {
		t.Errorf("%d containers (%v)", len(cs), err)
	}
	for _, id := range []string{"", strings.Repeat("x", 5000)} {
		_, err := e.CreateDatabase(bg, core.DatabaseSpec{ID: id})
		wantCode(t, err, status.BadRequest, 0)
	}
}
