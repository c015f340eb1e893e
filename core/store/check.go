package store

import (
	"bytes"
	"context"
	"fmt"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// maxProblems is how many problems a check lists before it stops looking for more.
const maxProblems = 100

// Check verifies a container: every item has its number, index, unique, ttl and feed entries and the reverse; heads and
// logical heads agree with the items; checksums hold; LSNs are in order and below the counter. It returns what is wrong, in
// words. Writers may go on; each slot is checked over one snapshot.
func (c *Container) Check(ctx context.Context) ([]string, error) {
	k := &checker{c: c}
	for _, sl := range c.slots {
		if err := ctx.Err(); err != nil {
			return k.problems, translate(err)
		}
		if err := k.slot(sl); err != nil {
			return k.problems, err
		}
		if len(k.problems) >= maxProblems {
			break
		}
	}
	return k.problems, nil
}

type checker struct {
	c        *Container
	problems []string
	sl       *slot
	snap     kv.Snapshot
	want     map[string][]byte // derived keys that must be there
	may      map[string]bool   // index entries that may be there while a rebuild is under way
	head     Head
	parts    map[string]*LogicalHead
	tracked  map[uint64]int64 // items with a value at a tracked path
	paths    []uint64
}

func (k *checker) bad(format string, args ...any) {
	if len(k.problems) < maxProblems {
		k.problems = append(k.problems, fmt.Sprintf("container %q slot %d: ", k.c.Def().ID, k.sl.key.ID)+fmt.Sprintf(format, args...))
	}
}

func (k *checker) slot(sl *slot) error {
	k.sl, k.want, k.may, k.parts = sl, map[string][]byte{}, map[string]bool{}, map[string]*LogicalHead{}
	k.head, k.tracked, k.paths = Head{}, map[uint64]int64{}, nil
	sl.mu.Lock() // the snapshot and the index version belong together
	k.snap = k.c.st.eng.Snapshot()
	up, version := k.c.upkeepOf(sl), sl.head.Index
	for _, t := range sl.head.Tracked {
		k.paths = append(k.paths, t.Path)
	}
	sl.mu.Unlock()
	defer k.snap.Close()
	lo, hi := keys.KindBounds(sl.key, keys.KindItem)
	if err := each(k.snap, lo, hi, func(key, val []byte) error { k.item(up, key, val); return nil }); err != nil {
		return err
	}
	for _, kind := range []keys.Kind{keys.KindNumber, keys.KindIndex, keys.KindUnique, keys.KindFeed, keys.KindTTL} {
		lo, hi := keys.KindBounds(sl.key, kind)
		if err := each(k.snap, lo, hi, func(key, val []byte) error { k.derived(key, val); return nil }); err != nil {
			return err
		}
	}
	for key := range k.want {
		k.bad("missing entry %x", key[keys.PrefixLen-1:])
	}
	if err := k.strangers(); err != nil {
		return err
	}
	return k.heads(version)
}

// strangers looks for keys of kinds that a slot doesn't have.
func (k *checker) strangers() error {
	known := map[keys.Kind]bool{keys.KindHead: true, keys.KindLogical: true, keys.KindItem: true, keys.KindNumber: true,
		keys.KindIndex: true, keys.KindUnique: true, keys.KindFeed: true, keys.KindTTL: true}
	lo, hi := keys.SlotBounds(k.sl.key)
	it, err := k.snap.Iter(lo, hi)
	if err != nil {
		return translate(err)
	}
	defer it.Close()
	for ok := it.First(); ok; {
		kind := keys.Kind(it.Key()[keys.PrefixLen-1])
		if !known[kind] || kind == keys.KindHead && len(it.Key()) != keys.PrefixLen {
			k.bad("a key that is of no kind: %x", it.Key()[keys.PrefixLen-1:])
			ok = it.Next()
			continue
		}
		ok = it.SeekGE(keys.After(it.Key()[:keys.PrefixLen]))
	}
	return translate(it.Err())
}

// claim says that an entry must be there.
func (k *checker) claim(key, val []byte) {
	if _, taken := k.want[string(key)]; taken {
		k.bad("two items claim entry %x", key[keys.PrefixLen-1:])
	}
	k.want[string(key)] = val
}

// item checks one item and adds the entries that it must have.
func (k *checker) item(up upkeep, key, val []byte) {
	suffix := bytes.Clone(key[keys.PrefixLen:])
	var it Item
	v := View{c: k.c, snap: k.snap}
	if err := verifyEnvelope(val); err != nil {
		k.bad("item %x: %v", suffix, err)
		return
	}
	if _, err := v.Decode(&it, suffix, val); err != nil {
		k.bad("item %x: %v", suffix, err)
		return
	}
	pk, id, err := k.c.keyOf(it.Doc)
	if err != nil {
		k.bad("item %x has no identity: %v", suffix, err)
		return
	}
	at, err := k.c.locate(nil, pk, id)
	if err != nil || !bytes.Equal(at.suffix, suffix) {
		k.bad("item %x stands under another key than its document says", suffix)
		return
	}
	if k.c.slots[at.slot] != k.sl {
		k.bad("item %x stands in the wrong slot", suffix)
	}
	s := k.sl.key
	k.claim(keys.AppendNumber(nil, s, it.Number), suffix)
	k.claim(keys.AppendFeed(nil, s, uint64(it.LSN), it.Pos), suffix)
	if it.TTL > 0 {
		k.claim(keys.AppendTTL(nil, s, uint64(it.TS()+int64(it.TTL)), suffix), []byte{1})
	}
	t := up.termsNeeded(&it)
	for i := range t.Len() {
		term, flag := t.At(i)
		k.claim(keys.AppendIndexEntry(nil, s, term, it.Number, it.ident), []byte{flag})
	}
	if up.next != nil {
		all := up.termsThere(&it)
		for i := range all.Len() {
			term, _ := all.At(i)
			k.may[string(keys.AppendIndexEntry(nil, s, term, it.Number, it.ident))] = true
		}
		termsPool.Put(all)
	}
	k.head.Classes |= t.Classes | keyClasses(it.ident)
	k.head.Elements.Merge(&t.Elements)
	k.head.Lossy.Merge(&t.Lossy)
	k.head.Ticks = max(k.head.Ticks, it.Ticks)
	if n := it.Number & (1<<40 - 1); n > k.c.counter.numbers() || it.Number>>40 != place20(k.c.Def().PartitionKey.EPKKind(), at.place) {
		k.bad("item %x has number %x, which was never given out for it", suffix, it.Number)
	}
	for _, p := range k.paths {
		k.tracked[p] += int64(t.HasValue(p))
	}
	termsPool.Put(t)
	for n, u := range k.c.uniques {
		key := keys.AppendUnique(nil, s, at.tuple, uint16(n), u.appendValues(nil, it.Doc))
		k.claim(key, at.ident[len(at.tuple):])
	}
	size := storedSize(at, &it)
	k.head.Items++
	k.head.Bytes += size
	k.head.LSN = max(k.head.LSN, it.LSN)
	part := string(at.suffix[:len(at.place)+len(at.tuple)])
	if k.parts[part] == nil {
		k.parts[part] = &LogicalHead{}
	}
	p := k.parts[part]
	p.Items++
	p.Bytes += size
	p.LSN = max(p.LSN, it.LSN)
}

// derived checks one entry against what the items want.
func (k *checker) derived(key, val []byte) {
	want, ok := k.want[string(key)]
	switch {
	case k.may[string(key)]: // its flag is that of one policy or the other
	case !ok:
		k.bad("entry %x has no item", key[keys.PrefixLen-1:])
	case !bytes.Equal(want, val) && !formless(want, val):
		k.bad("entry %x holds %x, not %x", key[keys.PrefixLen-1:], val, want)
	}
	delete(k.want, string(key))
}

// formless reports whether val is an index entry's flag without the form that is wanted: it was written before there were forms.
func formless(want, val []byte) bool {
	return len(want) == 1 && len(val) == 1 && want[0]&^index.FormMask == val[0]
}

func (k *checker) heads(version uint32) error {
	b, err := k.snap.Get(k.sl.headKey)
	if err != nil {
		k.bad("no head: %v", err)
		return nil
	}
	var h Head
	if err := h.decode(b); err != nil {
		k.bad("%v", err)
		return nil
	}
	if h.Items != k.head.Items || h.Bytes != k.head.Bytes {
		k.bad("head counts %d items of %d bytes, there are %d of %d", h.Items, h.Bytes, k.head.Items, k.head.Bytes)
	}
	if h.LSN < k.head.LSN {
		k.bad("head LSN %d is below an item's %d", h.LSN, k.head.LSN)
	}
	if limit := k.c.counter.limit(); h.LSN > limit {
		k.bad("head LSN %d is above the counter's %d", h.LSN, limit)
	}
	for _, t := range h.Tracked {
		if n := k.tracked[t.Path]; n != t.Count && h.Next == 0 {
			k.bad("head counts %d items at path %x, there are %d", t.Count, t.Path, n)
		}
	}
	if h.Index != version {
		k.bad("head has index version %d, not %d", h.Index, version)
	}
	if k.head.Classes&^h.Classes != 0 {
		k.bad("head lacks value classes %b", k.head.Classes&^h.Classes)
	}
	if all := h.Elements; all.Merge(&k.head.Elements) {
		k.bad("head lacks paths with array elements")
	}
	if all := h.Lossy; all.Merge(&k.head.Lossy) {
		k.bad("head lacks paths with cut values")
	}
	if h.Ticks < k.head.Ticks {
		k.bad("head time %d is before an item's %d", h.Ticks, k.head.Ticks)
	}
	lo, hi := keys.KindBounds(k.sl.key, keys.KindLogical)
	err = each(k.snap, lo, hi, func(key, val []byte) error {
		part := string(key[keys.PrefixLen:])
		var l LogicalHead
		want := k.parts[part]
		switch err := l.decode(val); {
		case err != nil:
			k.bad("%v", err)
		case want == nil:
			k.bad("logical head %x has no items", part)
		case l.Items != want.Items || l.Bytes != want.Bytes || l.LSN < want.LSN || l.LSN > h.LSN:
			k.bad("logical head %x says %+v, its items %+v", part, l, *want)
		}
		delete(k.parts, part)
		return nil
	})
	for part := range k.parts {
		k.bad("logical partition %x has no head", part)
	}
	return err
}
