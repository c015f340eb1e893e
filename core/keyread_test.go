package core_test

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// A write whose key the caller has read with KeyOf has the same result, or is refused with the same error, as one
// without.
func TestKeyReadByTheCaller(t *testing.T) {
	e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ct := newContainer(t, e, core.ContainerSpec{})
	for i, text := range []string{`{"id":"a","pk":"p"}`, `{"id":"b"}`, `{"id":"c","pk":null}`, `{"id":"d","pk":[1]}`,
		`{"id":"e","pk":1.5}`, `{"id":"` + strings.Repeat("long", 1000) + `","pk":"p"}`} {
		d := mustDoc(t, text)
		pk, id, err := ct.KeyOf(d)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ct.Write(bg, core.Write{Kind: core.Create, PK: pk, ID: id, Doc: d, KeyRead: true})
		_, again := ct.Write(bg, core.Write{Kind: core.Create, Doc: d})
		want := status.Conflict
		if i == 5 {
			want = status.BadRequest
		}
		if (err == nil) != (i < 5) || !status.Is(again, want) || err != nil && err.Error() != again.Error() {
			t.Errorf("%.40s: %v, %v", text, err, again)
		}
	}
}
