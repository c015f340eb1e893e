package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/work"
)

// Lost describes data that a restore couldn't save.
type Lost struct {
	Database     string `json:"database,omitempty"`
	Container    string `json:"container,omitempty"`
	PartitionKey string `json:"partitionKey,omitempty"` // JSON, an array
	ID           string `json:"id,omitempty"`           // JSON; the stored key in hexadecimal if it can't be decoded
	What         string `json:"what"`
}

// String implements fmt.Stringer.
func (l Lost) String() string {
	s := l.What
	if l.ID != "" {
		s = fmt.Sprintf("item %s of partition key %s: %s", l.ID, l.PartitionKey, s)
	}
	if l.Container != "" {
		s = fmt.Sprintf("container %q of database %q: %s", l.Container, l.Database, s)
	}
	return s
}

// Restored counts what a restore has saved.
type Restored struct {
	Containers int
	Items      int64
}

// Gap is a part of a damaged store that couldn't be read. It may have held keys from Lo to before Hi; nil is no bound.
type Gap struct {
	Lo, Hi []byte
	What   string
}

// Saved is the readable part of a damaged store.
type Saved interface {
	// Each calls visit for all keys, in order.
	Each(visit func(key, val []byte) error) error
	// Gaps returns the unreadable parts that were found so far.
	Gaps() []Gap
}

// Restore builds a store in an empty engine from the readable part of a damaged one. It copies the catalog, items and
// counters. It derives everything else from them. The derived entries that can still be read show which items are
// missing: lost is called for each. For missing items of which no entry can be read, lost is called with their number.
// Restore uses the same memory for any number of saved items.
//
// Example: the number entry of item "x" can be read but its block of items can't. Restore copies the other items and
// reports "x" as lost.
func Restore(ctx context.Context, eng kv.Engine, clk *clock.Clock, saved Saved, lost func(Lost)) (Restored, error) {
	r := &restorer{ctx: ctx, eng: eng, clk: clk, saved: saved, lost: lost,
		slots: map[keys.Slot]*place{}, gens: map[uint32]*generation{}, strays: map[uint32]bool{},
		short: map[keys.Slot]bool{}}
	if err := saved.Each(r.visit); err != nil {
		return r.done, err
	}
	if err := r.finish(); err != nil {
		return r.done, err
	}
	for _, g := range saved.Gaps() {
		r.gap(g)
	}
	return r.done, nil
}

// gap reports what a gap may have held, unless it is known that all losses in it have been reported.
func (r *restorer) gap(g Gap) {
	what := g.What
	if g.Lo != nil && g.Hi != nil {
		if r.accounted(g) {
			return
		}
		what = fmt.Sprintf("%s; keys from %x to %x may have stood there", what, g.Lo, g.Hi)
	}
	r.lost(Lost{What: what})
}

// accounted reports whether it is known that all losses in a gap have been reported: the gap held only derived data, or
// data of slots whose head tells how many items there were, and each missing one has been named.
func (r *restorer) accounted(g Gap) bool {
	lo, from, ok := keys.ParseSlot(g.Lo)
	hi, _, ok2 := keys.ParseSlot(g.Hi)
	if !ok || !ok2 || r.metaBad {
		return false
	}
	for s := range r.slots {
		if keys.CompareSlots(s, lo) < 0 || keys.CompareSlots(s, hi) > 0 || s == lo && from > keys.KindItem {
			continue
		}
		head := keys.AppendPrefix(nil, s, keys.KindHead)
		if s == hi && bytes.Compare(g.Hi, head) <= 0 {
			continue
		}
		short, seen := r.short[s]
		if short || !seen || bytes.Compare(g.Lo, head) <= 0 {
			return false
		}
	}
	return true
}

type restorer struct {
	ctx     context.Context
	eng     kv.Engine
	clk     *clock.Clock
	saved   Saved
	lost    func(Lost)
	done    Restored
	b       kv.Batch
	catalog []catalog.Entry
	begun   bool // the catalog was made
	metaBad bool // a part of the catalog is lost
	slots   map[keys.Slot]*place
	gens    map[uint32]*generation
	strays  map[uint32]bool // generations without a container
	cur     *slotRestore
	short   map[keys.Slot]bool // slots whose head is lost, or whose missing items aren't all named
}

// generation is what is known about a container's numbers.
type generation struct {
	c       *Container
	lsn     int64
	numbers uint64
}

// place is a slot of a container.
type place struct {
	g  *generation
	sl *Slot
}

// restoreOps and restoreBytes bound the operations that are written at a time, except for the last one.
const (
	restoreOps   = 4096
	restoreBytes = 4 << 20
)

func (r *restorer) put(key, val []byte) error {
	if r.b.Put(key, val); r.b.Len() < restoreOps && r.b.Size() < restoreBytes {
		return nil
	}
	return r.flush()
}

func (r *restorer) flush() error {
	if r.b.Len() == 0 {
		return nil
	}
	cm, err := r.eng.Write(r.ctx, &r.b, nil)
	if err == nil {
		err = cm.Wait()
	}
	r.b.Reset()
	return translate(err)
}

func (r *restorer) visit(key, val []byte) error {
	slot, kind, ok := keys.ParseSlot(key)
	if !ok {
		if !r.begun && keys.IsMeta(key) {
			r.catalog = append(r.catalog, catalog.Entry{Key: bytes.Clone(key), Value: bytes.Clone(val)})
		}
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	if r.cur == nil || r.cur.key != slot {
		if err := r.endSlot(); err != nil {
			return err
		}
		p := r.slots[slot]
		if p == nil {
			r.stray(slot)
			return nil
		}
		r.cur = newSlotRestore(r, p)
	}
	return r.cur.visit(kind, key, val)
}

// stray handles a key without a container: the container was dropped, or its definition is lost.
func (r *restorer) stray(s keys.Slot) {
	if r.gens[s.Gen] == nil && r.metaBad && !r.strays[s.Gen] {
		r.strays[s.Gen] = true
		r.lost(
			Lost{What: fmt.Sprintf("the items of generation %d belong to a container whose definition is lost", s.Gen)})
	}
}

// begin makes the catalog, and empty containers.
func (r *restorer) begin() error {
	if r.begun {
		return nil
	}
	r.begun = true
	for _, g := range r.saved.Gaps() {
		r.metaBad = r.metaBad || (g.Lo == nil || keys.IsMeta(g.Lo)) && g.Hi != nil || g.Hi == nil && g.Lo == nil
	}
	err := catalog.Mend(r.catalog, &r.b, func(what string) {
		r.metaBad = true
		r.lost(Lost{What: what})
	})
	if err == nil {
		err = r.flush()
	}
	if err != nil {
		return err
	}
	cat, err := catalog.Open(r.eng, r.clk, catalog.Settings{})
	if err != nil {
		return err
	}
	bg := work.New(nil)
	defer bg.Close()
	st := Open(r.eng, cat, r.clk, Limits{ReadOnly: true}, bg)
	for _, d := range cat.Databases() {
		for def, err := range cat.Containers(context.Background(), d.ID, 0) {
			if err == nil {
				err = r.container(st, def)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *restorer) container(st *Store, def *catalog.Container) error {
	head := (&Head{Index: def.IndexVersion}).append(nil)
	for slot := range def.SlotKeys() {
		if err := r.put(keys.AppendPrefix(nil, slot, keys.KindHead), head); err != nil {
			return err
		}
	}
	if err := r.counter(def.Gen); err != nil {
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	c, err := st.Container(r.ctx, def)
	if err != nil {
		return err
	}
	g := &generation{c: c, lsn: c.counter.limit(), numbers: c.counter.numbers()}
	r.gens[def.Gen] = g
	for _, sl := range c.slotList() {
		r.slots[sl.key] = &place{g, sl}
	}
	r.done.Containers++
	return nil
}

// counter removes a malformed counter. It is derived again from what exists.
func (r *restorer) counter(gen uint32) error {
	c := counter{eng: r.eng, gen: gen}
	if err := c.load(r.ctx); status.CodeOf(err) != status.Corruption {
		return translate(err)
	}
	r.b.Delete(keys.AppendMeta(nil, keys.MetaCounter, gen, ""))
	return nil
}

func (r *restorer) endSlot() error {
	if r.cur == nil {
		return nil
	}
	s := r.cur
	r.cur = nil
	return s.end()
}

// finish ends the last slot and writes the counters, so that no number that was seen is given out again.
func (r *restorer) finish() error {
	if err := errors.Join(r.begin(), r.endSlot()); err != nil {
		return err
	}
	for gen, g := range r.gens {
		lsn, numbers := g.c.counter.limit(), g.c.counter.numbers()
		if g.lsn <= lsn && g.numbers <= numbers {
			continue
		}
		v := append(make([]byte, 0, 17), formatCounter)
		v = binary.BigEndian.AppendUint64(v, uint64(max(lsn, g.lsn+lsnBlock)))
		v = binary.BigEndian.AppendUint64(v, max(numbers, g.numbers+numBlock))
		if err := r.put(keys.AppendMeta(nil, keys.MetaCounter, gen, ""), v); err != nil {
			return err
		}
	}
	return r.flush()
}

// slotRestore makes a slot. Its keys are read by kind: the head, the items, and then the entries that were derived from
// them.
type slotRestore struct {
	r     *restorer
	g     *generation
	key   keys.Slot
	k     checker // it reads items as a check does
	old   Head
	known bool // old could be read
	head  Head

	latest int64 // the latest time of an item
	part   []byte
	sum    LogicalHead
	gone   map[uint64]bool // hashes of the suffixes of items that were reported
	named  int64
}

func newSlotRestore(r *restorer, p *place) *slotRestore {
	sl := p.sl
	s := &slotRestore{r: r, g: p.g, key: sl.key, gone: map[uint64]bool{}}
	s.k = checker{c: p.g.c, sl: sl, up: p.g.c.upkeepOf(context.Background(), sl)}
	s.head = Head{Index: p.g.c.Def().IndexVersion}
	return s
}

func (s *slotRestore) visit(kind keys.Kind, key, val []byte) error {
	switch kind {
	case keys.KindHead:
		if s.known = s.old.decode(val) == nil; s.known {
			s.head.LSN, s.head.Ticks = s.old.LSN, s.old.Ticks
			s.head.Epochs = slices.Clone(s.old.Epochs)
		}
	case keys.KindItem:
		return s.item(bytes.Clone(key[keys.PrefixLen:]), bytes.Clone(val))
	case keys.KindNumber, keys.KindFormerNumber, keys.KindFeed:
		return s.entry(kind, key, val)
	case keys.KindIndex:
		if s.known && s.old.Items > s.head.Items+s.named { // some missing items are not named yet
			return s.entry(kind, key, val)
		}
	}
	return nil
}

// item saves an item.
func (s *slotRestore) item(suffix, val []byte) error {
	it, problem := s.k.decode(suffix, val)
	if problem != "" {
		s.lose(suffix, problem)
		return nil
	}
	if taken, err := s.taken(it); err != nil || taken {
		return err
	}
	if err := s.logical(it); err != nil {
		return err
	}
	t := s.k.up.termsNeeded(&it.Item)
	defer termsPool.Put(t)
	more := flagsOf(t, it.ident)
	s.head.addFlags(&more)
	size := storedSize(it.at, &it.Item)
	for _, h := range []*int64{&s.head.Items, &s.sum.Items} {
		*h++
	}
	s.head.Bytes, s.sum.Bytes = s.head.Bytes+size, s.sum.Bytes+size
	s.latest = max(s.latest, it.Ticks)
	s.head.LSN, s.sum.LSN, s.g.lsn = max(s.head.LSN, it.LSN), max(s.sum.LSN, it.LSN), max(s.g.lsn, it.LSN)
	s.g.numbers = max(s.g.numbers, Counter(it.Number))
	s.r.done.Items++
	if err := s.r.put(append(keys.AppendPrefix(nil, s.key, keys.KindItem), suffix...), val); err != nil {
		return err
	}
	if err := s.k.wants(it, t, func(_ keys.Kind, key, val []byte) error { return s.r.put(key, val) }); err != nil {
		return err
	}
	return s.eachEntry(it, func(key []byte) error { return s.r.put(key, it.at.suffix) })
}

// eachEntry calls f for the keys of an item's entries in declared indexes.
func (s *slotRestore) eachEntry(it *checked, f func(key []byte) error) error {
	for _, d := range s.g.c.declares() {
		all, _ := d.Keys(it.Doc)
		for i := range all {
			if err := f(s.g.c.entryKey(d, &all[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

// errTaken says that an entry exists.
var errTaken = errors.New("the entry exists")

// taken reports whether another item has a value that must be unique. It happens when an older version of an item was
// restored, whose value another item has taken since.
func (s *slotRestore) taken(it *checked) (bool, error) {
	if !s.g.c.single() {
		return false, nil
	}
	if err := s.r.flush(); err != nil {
		return false, err
	}
	absent := func(key []byte) error {
		_, err := s.r.eng.Get(s.r.ctx, nil, key)
		if err == nil {
			return errTaken
		}
		if errors.Is(err, kv.ErrNotFound) {
			return nil
		}
		return translate(err)
	}
	var err error
	for n, u := range s.g.c.uniques {
		err = cmp.Or(err, absent(keys.AppendUnique(nil, s.key, it.at.tuple, uint16(n), u.appendValues(nil, it.Doc))))
	}
	if err = cmp.Or(err, s.eachEntry(it, absent)); errors.Is(err, errTaken) {
		s.lose(it.at.suffix, "another item has its unique key")
		return true, nil
	}
	return false, err
}

// logical begins another logical partition when an item is the first one in it.
func (s *slotRestore) logical(it *checked) error {
	part := it.at.suffix[:len(it.at.place)+len(it.at.tuple)]
	if s.part != nil && bytes.Equal(part, s.part) {
		return nil
	}
	if err := s.endPart(); err != nil {
		return err
	}
	s.part = append(s.part[:0], part...)
	return nil
}

func (s *slotRestore) endPart() error {
	if s.part == nil || s.g.c.Def().KeyIsID() {
		return nil
	}
	h := s.sum
	s.sum = LogicalHead{}
	return s.r.put(append(keys.AppendPrefix(nil, s.key, keys.KindLogical), s.part...), h.append(nil))
}

// entry checks whether the item of an entry was saved. An entry of the feed tells whether it is the newest version.
func (s *slotRestore) entry(kind keys.Kind, key, val []byte) error {
	suffix, ok := s.k.ownerOf(kind, key, val)
	if !ok {
		return nil
	}
	if err := s.r.flush(); err != nil {
		return err
	}
	stored, err := s.r.eng.Get(s.r.ctx, nil, append(keys.AppendPrefix(nil, s.key, keys.KindItem), suffix...))
	if errors.Is(err, kv.ErrNotFound) {
		s.lose(suffix, "it can't be read")
		return nil
	}
	if err != nil {
		return translate(err)
	}
	lsn, _, ok := keys.Feed(key)
	var it Item
	if kind != keys.KindFeed || !ok || decodeEnvelope(stored, &it) != nil {
		return nil
	}
	s.g.lsn = max(s.g.lsn, int64(lsn))
	if it.LSN < int64(lsn) && !s.gone[xxhash.Sum64(suffix)] {
		s.gone[xxhash.Sum64(suffix)] = true
		l := s.describe(suffix)
		l.What = "its newest version can't be read; the one before it is saved"
		s.r.lost(l)
	}
	return nil
}

// lose reports an item as lost, once.
func (s *slotRestore) lose(suffix []byte, what string) {
	h := xxhash.Sum64(suffix)
	if s.gone[h] {
		return
	}
	s.gone[h] = true
	s.named++
	l := s.describe(suffix)
	l.What = what
	s.r.lost(l)
}

func (s *slotRestore) describe(suffix []byte) Lost {
	def := s.g.c.Def()
	l := Lost{Database: def.Database, Container: def.ID, ID: fmt.Sprintf("%x", suffix)}
	if len(suffix) <= s.g.c.placeLen() {
		return l
	}
	rest := suffix[s.g.c.placeLen():]
	pk := []byte{'['}
	for i := range def.KeyPaths() {
		v, r, err := keys.DecodeExact(rest)
		if err != nil {
			return l
		}
		if i > 0 {
			pk = append(pk, ',')
		}
		pk, rest = value.AppendText(pk, v, value.PlainJSON), r
	}
	l.PartitionKey = string(append(pk, ']'))
	if v, _, err := keys.DecodeExact(rest); err == nil {
		l.ID = string(value.AppendText(nil, v, value.PlainJSON))
	}
	return l
}

// end writes the slot's head.
func (s *slotRestore) end() error {
	if err := s.endPart(); err != nil {
		return err
	}
	n := s.old.Items - s.head.Items - s.named
	s.r.short[s.key] = !s.known || n != 0
	if s.known && n > 0 {
		def := s.g.c.Def()
		s.r.lost(Lost{Database: def.Database, Container: def.ID,
			What: fmt.Sprintf("%d more items of slot %d, whose keys are lost too", n, s.key.ID)})
	}
	s.g.lsn = max(s.g.lsn, s.head.LSN)
	if s.latest > s.head.latest() { // the head is lost or old: the order of times is unknown
		s.head.Epochs = []Epoch{{0, s.latest}, {s.head.LSN + 1, s.latest}}
		s.head.Ticks = s.latest
	}
	return s.r.put(s.k.sl.headKey[:], s.head.append(nil))
}
