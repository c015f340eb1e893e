package tikvkv

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// The chores of a store whose values were replaced remove what is left of them.
func TestChores(t *testing.T) {
	m := newMock(t)
	e := m.open("main")
	put(t, e, "k", strings.Repeat("v", maxInline+1))
	put(t, e, "k", "small")
	for _, c := range e.Chores() {
		if c.Name == "" || c.First <= 0 || c.Every < c.First {
			t.Errorf("%+v", c)
		}
		if err := c.Do(bg); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	if n, err := e.Sweep(bg); n != 0 || err != nil {
		t.Errorf("%d parts are left, %v", n, err)
	}
	if v, err := e.Get(bg, nil, []byte("k")); string(v) != "small" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range e.Chores() {
		if err := c.Do(bg); err == nil || !strings.Contains(err.Error(), kv.ErrClosed.Error()) {
			t.Errorf("%s of a closed store: %v", c.Name, err)
		}
	}
}
