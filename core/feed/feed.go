// Package feed reads the change feed: the latest version of every item in the order of its last write.
//
// A slot's feed has exactly one entry per live item. All slots of a container count on one LSN scale, so one position is good
// for every range and its descendants: "everything up to this LSN was seen".
package feed

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// Position is where a reader of some slots stands: per slot the last LSN whose commit was read whole.
type Position struct {
	seen map[uint32]int64 // by slot id; a slot that is not named stands at Base
	Base int64
	rid  [8]byte // the container that it was read from; zero with Start and After
}

// Start is the position before everything.
func Start() Position { return Position{} }

// After returns the position after every commit up to lsn.
func After(lsn int64) Position { return Position{Base: lsn} }

// Page is a piece of the feed. No page ends inside a commit.
type Page struct {
	Items []*store.Item
	Next  Position
	More  bool // there may be more right away

	bytes int // of the items' documents
}

// maxBytes is how much of documents ends a page, whatever number of items is asked for.
const maxBytes = 4 << 20

// full reports whether a page of at most so many items takes no further commit.
func (p *Page) full(most int) bool { return len(p.Items) >= most || p.bytes >= maxBytes }

// Read returns up to max items of the slots [from, to) that were written after a position, in LSN order within each slot,
// and where to go on. They are fewer when they are large, and may be more because a commit is never cut. It examines the
// feed entries after the position and nothing else. It stops before commits that are not durable yet.
func Read(ctx context.Context, c *store.Container, from, to int, pos Position, max int) (Page, error) {
	rid := c.Def().RID()
	if pos.rid != rid && pos.rid != [8]byte{} {
		return Page{}, errPosition()
	}
	p := Page{Next: Position{Base: pos.Base, seen: map[uint32]int64{}, rid: rid}}
	for k, v := range pos.seen {
		p.Next.seen[k] = v
	}
	if err := c.Alive(); err != nil {
		return p, err
	}
	if max < 1 {
		max = 1
	}
	view := c.View()
	defer view.Close()
	for i := from; i < to; i++ {
		if p.full(max) {
			p.More = true
			break
		}
		if err := readSlot(ctx, view, i, &p, max); err != nil {
			return p, err
		}
	}
	return p, nil
}

func readSlot(ctx context.Context, view *store.View, i int, p *Page, most int) error {
	key := view.SlotKey(i)
	after := max(p.Next.of(key.ID), 0)
	lo := keys.AppendFeed(nil, key, uint64(after)+1, 0)
	_, hi := keys.KindBounds(key, keys.KindFeed)
	it, err := view.Iter(lo, hi)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return status.Wrap(status.Timeout, err, "The request took too long.")
		}
		lsn, _, ok := keys.Feed(it.Key())
		if !ok {
			return status.New(status.Corruption, "malformed feed entry")
		}
		if int64(lsn) != after && p.full(most) {
			p.More = true
			return nil
		}
		item := &store.Item{}
		found, err := view.FetchSuffix(item, i, it.Value(), &store.Mem{})
		if err != nil {
			return err
		}
		if found {
			if err := view.Settle(i, item); err != nil {
				return err
			}
			p.Items, p.bytes = append(p.Items, item), p.bytes+len(item.Doc)
		}
		after = int64(lsn)
		p.Next.seen[key.ID] = after
	}
	return store.Translate(it.Err())
}

func (p Position) of(slot uint32) int64 {
	if v, ok := p.seen[slot]; ok {
		return max(v, p.Base)
	}
	return p.Base
}

const formatPosition = 1

// String returns the position as opaque text with a checksum.
func (p Position) String() string {
	b := append([]byte{formatPosition}, p.rid[:]...)
	b = binary.AppendVarint(b, p.Base)
	b = binary.AppendUvarint(b, uint64(len(p.seen)))
	for _, k := range slices.Sorted(maps.Keys(p.seen)) {
		b = binary.AppendUvarint(b, uint64(k))
		b = binary.AppendVarint(b, p.seen[k])
	}
	b = binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
	return base64.RawURLEncoding.EncodeToString(b)
}

func errPosition() error {
	return status.New(status.BadRequest, "The continuation of the change feed is invalid or belongs to another container.")
}

// Parse reads what String wrote.
func Parse(s string) (Position, error) {
	bad := errPosition()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < 15 || b[0] != formatPosition || binary.BigEndian.Uint32(b[len(b)-4:]) != uint32(xxhash.Sum64(b[:len(b)-4])) {
		return Position{}, bad
	}
	p := Position{seen: map[uint32]int64{}, rid: [8]byte(b[1:9])}
	rest := b[9 : len(b)-4]
	var k int
	if p.Base, k = binary.Varint(rest); k <= 0 {
		return Position{}, bad
	}
	rest = rest[k:]
	n, k := binary.Uvarint(rest)
	if k <= 0 || n > uint64(len(rest)) {
		return Position{}, bad
	}
	rest = rest[k:]
	for range n {
		slot, k := binary.Uvarint(rest)
		if k <= 0 {
			return Position{}, bad
		}
		lsn, m := binary.Varint(rest[k:])
		if m <= 0 {
			return Position{}, bad
		}
		p.seen[uint32(slot)], rest = lsn, rest[k+m:]
	}
	if len(rest) > 0 {
		return Position{}, bad
	}
	return p, nil
}
