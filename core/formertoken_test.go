package core_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// formerRow is a row and its position: the token's bytes before and after the number, and the item's number.
type formerRow struct {
	id           string
	front, place []byte
	key          []int
	number       uint64
}

// token returns the token of a version that ordered rows by the whole number.
func (x *formerRow) token() string {
	b := append([]byte{1}, x.front[1:]...)
	b = binary.AppendUvarint(b, x.number)
	return base64.RawURLEncoding.EncodeToString(sealed(append(b, x.place...)))
}

// formerRows returns the rows of a query with the parts of their tokens.
func formerRows(t *testing.T, c *core.Container, q exec.Query, key func(n int) []int) (rows []formerRow) {
	q.Continuation = ""
	for token := "-"; token != ""; q.Continuation = token {
		r, err := c.Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Next() {
			t.Fatal(r.Err())
		}
		it := r.Item().Clone()
		token = r.Continuation()
		more := r.Next()
		r.Close()
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		x := formerRow{id: it.ID().Str(), number: it.Number, front: raw[:10], place: raw[10 : len(raw)-4]}
		for range 2 {
			_, n := binary.Uvarint(x.place)
			x.place = x.place[n:]
		}
		if kind := raw[9]; kind == 2 {
			x.place = withoutEnd(x.place)
		}
		if n, ok := value.ObjectOf(it.Doc).Get("n"), key != nil; ok {
			x.key = key(int(n.Int()))
		}
		if rows = append(rows, x); !more {
			break
		}
	}
	return rows
}

// withoutEnd removes the end of the unit from the position of an index scan: signature, beginning, value, end. Former
// versions didn't write it.
func withoutEnd(place []byte) []byte {
	at := 4
	for range 2 {
		size, n := binary.Uvarint(place[at:])
		at += n + int(size)
	}
	return place[:at]
}

// placed gives the items of a store the numbers of a version that put 20 bits of the placement in front.
func placed(t *testing.T, h *hooks) {
	t.Helper()
	ks, vs := every(t, h)
	var b kv.Batch
	for i, key := range ks {
		if keys.Kind(key[keys.PrefixLen-1]) != keys.KindItem {
			continue
		}
		const at, doc = 2, 32 // offsets of the number, and of the document after the checksum
		v := vs[i]
		place := uint64(binary.BigEndian.Uint32(key[keys.PrefixLen:]) << 2 >> 12)
		binary.BigEndian.PutUint64(v[at:], place<<40|binary.BigEndian.Uint64(v[at:]))
		sum := xxhash.Sum64(v[:doc-4]) ^ bits.RotateLeft64(xxhash.Sum64(v[doc:]), 1)
		binary.BigEndian.PutUint32(v[doc-4:], uint32(sum))
		b.Put(key, v)
	}
	if _, err := h.Write(bg, &b, nil); err != nil || b.Len() == 0 {
		t.Fatal(b.Len(), err)
	}
}

// TestTokensOfWholeNumbers: a query continues from a token of the version that ordered rows by whole item numbers,
// where the partition key is the id. Every row comes exactly once, for any page size.
func TestTokensOfWholeNumbers(t *testing.T) {
	race.Alone(t)
	e, h := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{PartitionKey: keyIsID})
	const items = 60
	for i := range items {
		if put(t, c, core.Create, fmt.Sprintf(`{"id":"%02d","m":%d,"n":%d}`, i, i%3, i%15)); i == items-5 {
			placed(t, h) // the later items are created by this version
		}
	}
	up := func(a, b *formerRow) int {
		return cmp.Or(slices.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
	}
	needs := []access.Path{access.NewPath("n"), access.ID}
	for name, tc := range map[string]struct {
		q       exec.Query
		key     func(n int) []int
		compare func(a, b *formerRow) int
	}{
		"index":   {q: exec.Query{Pred: few(false)}},
		"covered": {q: exec.Query{Pred: few(false), Needs: needs}},
		"union":   {q: exec.Query{Pred: access.Or(access.Eq(access.NewPath("n"), value.Int32Of(3)), few(false))}},
		"sort": {q: exec.Query{OrderBy: orderBy(false, "m"), Compare: value.CompareCosmos}, compare: up,
			key: func(n int) []int { return []int{n % 3} }},
		"sort of a page": {q: exec.Query{OrderBy: orderBy(false, "m"), Compare: value.CompareCosmos, Page: 2},
			compare: up,
			key:     func(n int) []int { return []int{n % 3} }},
		"ordered down": {q: exec.Query{Pred: few(false), OrderBy: orderBy(true, "n"), Compare: value.CompareCosmos},
			key: func(n int) []int { return []int{n} }, compare: func(a, b *formerRow) int { return up(b, a) }},
		"covered and ordered": {
			q:   exec.Query{Pred: few(false), OrderBy: orderBy(true, "n"), Compare: value.CompareCosmos, Needs: needs},
			key: func(n int) []int { return []int{n} }, compare: func(a, b *formerRow) int { return up(b, a) }},
	} {
		t.Run(name, func(t *testing.T) {
			rows := formerRows(t, c, tc.q, tc.key)
			full, err := c.Query(bg, &exec.Query{})
			if err != nil {
				t.Fatal(err)
			}
			numbers := map[string]uint64{}
			for full.Next() {
				numbers[full.Item().ID().Str()] = full.Item().Number
			}
			full.Close()
			for i := range rows { // covered rows have only a part of it
				rows[i].number = numbers[rows[i].id]
			}
			if tc.compare == nil {
				tc.compare = func(a, b *formerRow) int {
					return cmp.Or(bytes.Compare(a.place, b.place), cmp.Compare(a.number, b.number))
				}
			}
			slices.SortFunc(rows, func(a, b formerRow) int { return tc.compare(&a, &b) })
			for at := range rows {
				var want []string
				for _, x := range rows[at+1:] {
					want = append(want, x.id)
				}
				slices.Sort(want)
				for _, page := range []int{1, 4, items} {
					q := tc.q
					q.MaxRead = page * 2 // pauses within the rows that were already returned
					got := rest(t, c, q, rows[at].token(), page)
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Fatalf("behind row %d, pages of %d:\n got %v\nwant %v", at, page, got, want)
					}
				}
			}
		})
	}
}

// TestTokensOfHashedObjects: a query continues from a token of the version that ordered objects and arrays by their
// hashes. Every row comes exactly once.
func TestTokensOfHashedObjects(t *testing.T) {
	race.Alone(t)
	for name, def := range map[string]core.PartitionKeyDef{"key is the id": keyIsID, "key is another": keyDefs["V2"]} {
		t.Run(name, func(t *testing.T) {
			e, _ := hooked(t, core.Options{MinSlots: 2})
			c := newContainer(t, e, core.ContainerSpec{PartitionKey: def})
			values := map[string]value.Value{}
			for i := range 900 {
				d := fmt.Sprintf(`{"id":"%03d","pk":"p%d"`, i, i%5)
				if i%30 == 0 {
					d += fmt.Sprintf(`,"o":%s`, []string{`{"x":%d}`, `[%d,"y"]`, `%d`}[i/30%3])
					d = fmt.Sprintf(d, i/120)
				}
				put(t, c, core.Create, d+"}")
				values[fmt.Sprintf("%03d", i)] = value.ObjectOf(mustDoc(t, d+"}")).Get("o")
			}
			q := exec.Query{Pred: access.Exists(access.NewPath("o")), Match: func(it *core.Item) (bool, error) {
				return value.ObjectOf(it.Doc).Get("o").IsDefined(), nil
			}}
			if p, err := c.Explain(bg, &q); err != nil || p.Kind != access.Index {
				t.Fatalf("%+v (%v)", p, err)
			}
			rows := formerRows(t, c, q, nil)
			if len(rows) != 30 {
				t.Fatalf("%d rows", len(rows))
			}
			hashed := 0
			for i := range rows { // signature, slot, value
				x := &rows[i]
				n, size := binary.Uvarint(x.place[4:])
				val, _ := keys.AppendFormerIndex(nil, values[x.id])
				x.place = append(x.place[:4+size+int(n)], byte(len(val)))
				x.place = append(x.place, val...)
				if keys.FormerIndex(val) {
					hashed++
				}
			}
			if hashed != 20 {
				t.Fatalf("%d rows are of objects and arrays", hashed)
			}
			slices.SortFunc(rows, func(a, b formerRow) int {
				slot := func(x *formerRow) int { return 5 + int(x.place[4]) }
				return cmp.Or(bytes.Compare(a.place[:slot(&a)], b.place[:slot(&b)]),
					bytes.Compare(a.place[slot(&a)+1:], b.place[slot(&b)+1:]), cmp.Compare(a.number, b.number))
			})
			for at := range rows {
				var want []string
				for _, x := range rows[at+1:] {
					want = append(want, x.id)
				}
				slices.Sort(want)
				for _, page := range []int{1, 4, 100} {
					got := rest(t, c, q, rows[at].token(), page)
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Fatalf("behind row %d, pages of %d:\n got %v\nwant %v", at, page, got, want)
					}
				}
			}
		})
	}
}

// TestNumbersOfRows: a caller that needs the items' numbers gets the ones assigned at creation, though the index
// doesn't hold them.
func TestNumbersOfRows(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{PartitionKey: keyIsID})
	for i := range 20 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%02d","n":%d}`, i, i))
	}
	placed(t, h)
	for i := range 20 {
		it, err := c.Read(bg, pk(fmt.Sprintf("%02d", i)), value.StringOf(fmt.Sprintf("%02d", i)))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := c.Query(bg, &exec.Query{Pred: access.Eq(access.NewPath("n"), value.Int32Of(int32(i))),
			Needs: []access.Path{access.NewPath("n")}, Number: true})
		if err != nil || !rows.Next() || rows.Item().Number != it.Number || it.Number>>40 == 0 {
			t.Fatalf("item %d: %v", i, err)
		}
		rows.Close()
	}
}
