package core_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// A continuation whose fields somebody has changed, with a checksum that fits, continues somewhere or is refused. It
// causes no panic and no other error, also when the slots that it names have been split and joined since.
func FuzzContinuation(f *testing.F) {
	e, err := core.Open(bg, memkv.New(), core.Options{MinSlots: 4})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close() })
	c := newContainer(f, e, core.ContainerSpec{})
	for i := range 60 {
		put(f, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"s":"s%d"}`, i, i, i%3, i%7))
	}
	queries := []exec.Query{*eqQuery("n", 1), {}, {OrderBy: orderBy(false, "s")}, {Shown: exec.Creation},
		{OrderBy: orderBy(true, "n")}}
	for i, q := range queries {
		_, token := page(f, c, q, 2)
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, raw[:len(raw)-4])
		for _, at := range []int{0, 9, 10, len(raw) - 5} { // format, kind, first and last field
			other := append([]byte(nil), raw[:len(raw)-4]...)
			other[at]++
			f.Add(i, other)
		}
	}
	at := epk.Split(epk.V2, 32)
	for _, err := range []error{c.SplitSlot(bg, at[2]), c.SplitSlot(bg, at[20]), c.JoinSlots(bg, at[15])} {
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		q := queries[uint(i)%uint(len(queries))]
		q.Continuation = base64.RawURLEncoding.EncodeToString(sealed(body))
		r, err := c.Query(bg, &q)
		if err == nil {
			n := 0
			for r.Next() {
				n++
			}
			if err = r.Err(); n > 60 {
				t.Errorf("%d rows of 60 items", n)
			}
			r.Close()
		}
		if err != nil && !status.Is(err, status.BadRequest) {
			t.Error(err)
		}
	})
}
