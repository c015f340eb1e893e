package core_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// compositePolicy indexes everything and has composite indexes; each is a list of paths, descending ones with a minus.
func compositePolicy(composites ...[]string) []byte {
	b := []byte(`{"indexingMode":"consistent","includedPaths":[{"path":"/*"}],"excludedPaths":[],"compositeIndexes":[`)
	for i, paths := range composites {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for j, p := range paths {
			if j > 0 {
				b = append(b, ',')
			}
			order := "ascending"
			if p[0] == '-' {
				p, order = p[1:], "descending"
			}
			b = fmt.Appendf(b, `{"path":"/%s","order":%q}`, p, order)
		}
		b = append(b, ']')
	}
	return append(b, "]}"...)
}

// TestCompositesOfOldStores opens a store whose policy has a composite index and whose index has no entries of it, as versions
// before composite indexes left it: the entries are made before anything is answered.
func TestCompositesOfOldStores(t *testing.T) {
	raw := memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	policy := compositePolicy([]string{"a", "-b"})
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: policy})
	for i := range 50 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":%d}`, i, i%7, i%3, i))
	}
	pol, err := index.Compile(policy, 0)
	if err != nil || len(pol.Composites()) != 1 {
		t.Fatal(err)
	}
	ks, vs := every(t, raw)
	var b kv.Batch
	gone := 0
	for i, key := range ks {
		switch keys.Kind(key[keys.PrefixLen-1]) {
		case keys.KindHead:
			head := bytes.Clone(vs[i])
			at := 1 + 8*4 + 4 + 8 // the value classes
			binary.BigEndian.PutUint32(head[at:], binary.BigEndian.Uint32(head[at:])&^index.CompositesKept)
			b.Put(key, head)
		case keys.KindIndex:
			gen, _ := keys.Generation(key)
			pol, err := index.Compile(policy, uint64(gen))
			if err != nil {
				t.Fatal(err)
			}
			if binary.BigEndian.Uint64(key[keys.PrefixLen:]) == pol.Composites()[0].ID {
				b.Delete(key)
				gone++
			}
		}
	}
	if _, err := raw.Write(bg, &b, nil); err != nil || gone != 50 {
		t.Fatalf("%d entries were there (%v)", gone, err)
	}
	if problems, err := e.Check(bg); err != nil || len(problems) == 0 {
		t.Fatal("the checker doesn't miss the entries")
	}
	later, err := core.Open(bg, raw, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clean(t, later)
}
