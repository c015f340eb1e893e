package store

import (
	"bytes"
	"testing"

	"github.com/orrerydb/orrery/core/status"
)

// An item in a temporary file is the same when it is read. Truncated bytes are refused.
func TestCarriedItems(t *testing.T) {
	it := &Item{Doc: []byte{5, 0, 0, 0, 0}, Number: 1 << 50, LSN: 77, Pos: 3, Ticks: 123456789, TTL: -1, flags: flagTTL,
		ident: []byte("identity"), paths: 2}
	b := AppendCarried(nil, it)
	got, err := ReadCarried(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Doc, it.Doc) || got.Number != it.Number || got.ETag() != it.ETag() || got.TTL != it.TTL ||
		got.flags != it.flags || !bytes.Equal(got.Identity(), it.Identity()) || got.paths != it.paths {
		t.Errorf("%+v became %+v", it, got)
	}
	for n := range len(b) - len(it.Doc) {
		if _, err := ReadCarried(b[:n]); !status.Is(err, status.Corruption) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
