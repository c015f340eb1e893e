package core_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// TestReadInto: reused memory holds the requested item and nothing of earlier ones.
func TestReadInto(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		never := int32(-1)
		c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &never})
		long := strings.Repeat("k", 900)
		put(t, c, core.Create, `{"id":"1","pk":"a","n":1}`)
		put(t, c, core.Create, `{"id":"2","pk":"a","ttl":1000,"text":"`+strings.Repeat("x", 5000)+`"}`)
		put(t, c, core.Create, fmt.Sprintf(`{"id":%q,"pk":%q}`, long, long))
		var it core.Item
		var m core.Mem
		for _, k := range [][2]string{{"a", "2"}, {"a", "1"}, {"a", "none"}, {long, long}, {"a", "1"}, {"b", "1"},
			{long, "1"}, {"a", "2"}} {
			want, werr := c.Read(bg, pk(k[0]), value.StringOf(k[1]))
			slot, err := c.ReadInto(bg, &it, &m, pk(k[0]), value.StringOf(k[1]))
			if s, serr := c.SlotOf(pk(k[0])); serr != nil || slot != s {
				t.Errorf("%.9s: slot %v, want %v", k, slot, s)
			}
			if werr != nil {
				if !status.Is(werr, status.NotFound) || !status.Is(err, status.NotFound) {
					t.Errorf("%.9s: %v and %v, want not found", k, werr, err)
				}
				continue
			}
			if err != nil || !reflect.DeepEqual(&it, want) {
				t.Errorf("%.9s: %v\n got %+v\nwant %+v", k, err, it, *want)
			}
		}
		if slot, err := c.ReadInto(bg, &it, &m, pk("a", "b"), value.StringOf("1")); slot != nil ||
			!status.Is(err, status.BadRequest) {
			t.Errorf("a key of two components: slot %v, %v", slot, err)
		}
	})
}
