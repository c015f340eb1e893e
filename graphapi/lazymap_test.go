package graphapi

import (
	"errors"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// lazy returns a map whose entries are those of m, and which ends with an error after n of them; -1: it has all.
func lazy(m *gvalue.Map, n int, end error) *gvalue.LazyMap {
	return &gvalue.LazyMap{Len: m.Len(), Each: func(f func(e gvalue.Entry) error) error {
		for i, e := range m.Entries() {
			if i == n {
				return end
			}
			if err := f(e); err != nil {
				return err
			}
		}
		return nil
	}}
}

// TestLazyMapsAreWrittenAsMaps: every serializer writes a map that is read meanwhile as it writes any other. An error
// of the map's entries, and one of Written, ends the writing.
func TestLazyMapsAreWrittenAsMaps(t *testing.T) {
	m := gvalue.MapOf("a", int64(1), int32(2), []any{"x", nil}, gvalue.TLabel, 1.5)
	broken := errors.New("the file is damaged")
	for mime, s := range serializers {
		if !writesLazily(s.codec) {
			continue
		}
		for _, o := range []message.Options{{}, {Traversers: true}} {
			want, err := s.codec.AppendItem(nil, m, 1, o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.codec.AppendItem([]byte("before"), lazy(m, -1, nil), 1, o)
			if err != nil || !slices.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("%s: %q, %v; want %q", mime, got, err, want)
			}
			if _, err := s.codec.AppendItem(nil, lazy(m, 2, broken), 1, o); !errors.Is(err, broken) {
				t.Errorf("%s: an error of the entries: %v", mime, err)
			}
			x, sizes := lazy(m, -1, nil), []int(nil)
			x.Written = func(bytes int) error {
				if sizes = append(sizes, bytes); len(sizes) == 2 {
					return broken
				}
				return nil
			}
			if _, err := s.codec.AppendItem(nil, x, 1, o); !errors.Is(err, broken) || len(sizes) != 2 ||
				sizes[0] <= 0 || sizes[1] <= sizes[0] {
				t.Errorf("%s: an error of Written: %v, after %v", mime, err, sizes)
			}
		}
	}
}
