package store

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/value"
)

// In a container whose partition key is the id, an item's number may contain its placement, as in older versions. In
// other containers it must.
func TestNumbersOfOlderItems(t *testing.T) {
	c, _ := checkedContainer(t, 0)
	at, err := c.locate(nil, PartitionKey{value.StringOf("x")}, value.StringOf("x"))
	if err != nil {
		t.Fatal(err)
	}
	placed := place20(c.Def().PartitionKey.EPKKind(), at.place)<<counterBits | 7
	cat := c.st.cat
	byID, err := cat.CreateContainer(context.Background(), "db", catalog.Spec{ID: "by id",
		PartitionKey: catalog.PartitionKeyDef{Paths: []string{"/id"}, Kind: "Hash", Version: 2}}, FirstHead())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		keyIsID bool
		number  uint64
		may     bool
	}{{false, placed, true}, {false, 7, false}, {false, placed ^ 1<<50, false}, {true, placed, true}, {true, 7, true},
		{true, placed ^ 1<<50, false}} {
		if tc.keyIsID {
			c.def.Store(byID)
		}
		if got := c.mayNumber(at.place, tc.number); got != tc.may {
			t.Errorf("number %x, key is id %v: %v", tc.number, tc.keyIsID, got)
		}
	}
	if c.Order(placed) != 7 || c.number(at.place, 9) != 9 {
		t.Errorf("order %x, number %x", c.Order(placed), c.number(at.place, 9))
	}
}
