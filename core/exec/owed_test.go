package exec

import (
	"testing"

	"github.com/orrerydb/orrery/core/store"
)

// An account of many items that don't match keeps a bounded number of them, and charges the others at once.
func TestAccountIsBounded(t *testing.T) {
	const more = 5
	var s Stats
	a := account{on: true}
	a.begin(&s, &position{})
	for i := range mostSkipped + more {
		it := store.Item{Doc: make([]byte, 10), Number: uint64(i + 1)}
		s.Entries++
		s.Items++
		s.Bytes += len(it.Doc)
		a.candidate(&it)
		a.skip(&it)
	}
	a.end(&s)
	if len(a.rest) != mostSkipped || s.Items-s.owed.items != more || s.Bytes-s.owed.bytes != 10*more {
		t.Errorf("%d are kept, %d items and %d bytes charged", len(a.rest), s.Items-s.owed.items, s.Bytes-s.owed.bytes)
	}
	if a.settle(&s); s.owed != (owed{}) {
		t.Errorf("%+v is owed at the end", s.owed)
	}
}
