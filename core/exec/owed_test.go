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
	a.begin(&s)
	for i := range mostSkipped + more {
		it := store.Item{Doc: make([]byte, 10)}
		s.Entries++
		s.Items++
		s.Bytes += len(it.Doc)
		a.candidate(&it)
		a.skip(uint64(i), len(it.Doc))
	}
	a.end(&s, true)
	if len(a.rest) != mostSkipped || s.Items-s.owed.items != more || s.Bytes-s.owed.bytes != 10*more {
		t.Errorf("%d are kept, %d items and %d bytes charged", len(a.rest), s.Items-s.owed.items, s.Bytes-s.owed.bytes)
	}
	if a.settle(&s); s.owed != (owed{}) {
		t.Errorf("%+v is owed at the end", s.owed)
	}
}
