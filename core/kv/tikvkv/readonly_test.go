package tikvkv

import (
	"errors"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// A store that is opened for reading must exist. An empty keyspace stays empty.
func TestReadOnlyMakesNoStore(t *testing.T) {
	m := newMock(t)
	for range 2 {
		_, err := Use(bg, m.store(nil), "main", Options{ReadOnly: true})
		var r *kv.Refusal
		if !errors.As(err, &r) || r.Sentence != "The keyspace main holds no store." {
			t.Fatal(err)
		}
	}
	e := m.open("main")
	put(t, e, "k", "v")
	other, err := Use(bg, m.store(nil), "main", Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := other.Get(bg, nil, []byte("k")); string(v) != "v" || other.Identity().ID != e.Identity().ID {
		t.Errorf("%q, %v", v, err)
	}
	if err := errors.Join(e.Close(), other.Close()); err != nil {
		t.Error(err)
	}
}
