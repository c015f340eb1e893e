package keys

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/value"
)

var layouts = map[string]Entries{"tuple and id": {}, "id alone": {ByID: true}}

// identityOf returns the identity of an item in a container with layout l.
func identityOf(l Entries, id string) []byte {
	b := AppendExact(nil, value.StringOf(id))
	if l.ByID {
		return append(b, b...)
	}
	return append(AppendExact(nil, value.StringOf("tenant")), b...)
}

func TestEntriesRoundTrip(t *testing.T) {
	const number = 0xABCDE<<40 | 77
	orders := map[Entries]uint64{{}: number, {ByID: true}: 77}
	lengths := map[Entries]int{{}: 8 + 9 + 5, {ByID: true}: 5 + 5}
	for name, l := range layouts {
		ident := identityOf(l, "id")
		check := func(what string, val []byte, parse func(key []byte) (IndexEntry, error)) {
			term := append([]byte{1, 2, 3, 4, 5, 6, 7, 8}, val...)
			key := l.Append([]byte("before")[:0], Slot{Gen: 1, ID: 2}, term, number, ident)
			e, err := parse(key)
			if err != nil || e.Path != 0x0102030405060708 || !bytes.Equal(e.Value, val) || e.Number != orders[l] ||
				!bytes.Equal(l.AppendIdentity(nil, e.Name), ident) {
				t.Errorf("%s, %s: parsed %+v (%v)", name, what, e, err)
			}
			if got := len(key) - PrefixLen - len(term); got != lengths[l] {
				t.Errorf("%s, %s: %d bytes behind the value, want %d", name, what, got, lengths[l])
			}
			if at := l.AppendNumber(nil, number); !bytes.HasPrefix(key[PrefixLen+len(term):], at) ||
				l.Order(number) != orders[l] {
				t.Errorf("%s, %s: the key %x hasn't its number %x behind the value", name, what, key, at)
			}
			for n := range len(key) - len(e.Name) {
				if _, err := parse(key[:n]); err == nil {
					t.Errorf("%s, %s: %d of %d bytes are accepted", name, what, n, len(key))
				}
			}
		}
		for _, v := range columnValues(t) {
			val, _ := AppendIndex(nil, v)
			check(fmt.Sprintf("%v of kind %d", v, v.Kind()), val, l.Parse)
		}
		desc, cols := []bool{false, true, true}, []byte(nil)
		for i, v := range []value.Value{value.StringOf("a\x00b"), value.DoubleOf(0.1), value.Undef()} {
			cols, _ = AppendColumn(cols, v, 100, desc[i])
		}
		check("columns", cols, func(key []byte) (IndexEntry, error) { return l.ParseColumns(key, 100, desc) })
	}
}

// TestEntriesAreInOrder: keys of entries sort by (value, order number).
func TestEntriesAreInOrder(t *testing.T) {
	vals := []value.Value{value.IntOf(-1), value.IntOf(2), value.DoubleOf(2.5), value.StringOf(""), value.StringOf("a"),
		value.StringOf("a\x00"), value.StringOf("ab")}
	numbers := []uint64{1, 2, 255, 256, 1 << 32, 1<<40 - 1}
	for name, l := range layouts {
		var ks [][]byte
		for _, v := range vals {
			for i, n := range numbers {
				term, _ := AppendIndex([]byte("path id."), v)
				ks = append(ks, l.Append(nil, Slot{1, 1}, term, n, identityOf(l, string(rune('z'-i)))))
			}
		}
		if !slices.IsSortedFunc(ks, bytes.Compare) {
			t.Errorf("%s: keys aren't in the order of (value, number)", name)
		}
	}
}

// FuzzEntries: the parser doesn't panic on any bytes, and Append makes the same key from what it accepts.
func FuzzEntries(f *testing.F) {
	for _, v := range columnValues(f) {
		term, _ := AppendIndex([]byte("path id."), v)
		for _, l := range layouts {
			f.Add(l.ByID, l.Append(nil, Slot{1, 1}, term, 5, identityOf(l, "id")))
		}
	}
	f.Fuzz(func(t *testing.T, byID bool, key []byte) {
		l := Entries{ByID: byID}
		e, err := l.Parse(key)
		if err != nil {
			return
		}
		s, k, ok := ParseSlot(key)
		if !ok || k != KindIndex {
			return
		}
		term := key[PrefixLen : PrefixLen+8+len(e.Value)]
		if again := l.Append(nil, s, term, e.Number, l.AppendIdentity(nil, e.Name)); !bytes.Equal(again, key) ||
			l.Order(e.Number) != e.Number {
			t.Fatalf("%x becomes %x", key, again)
		}
	})
}
