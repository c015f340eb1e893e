package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// maxProblems is the number of problems after which a check of a container stops.
const maxProblems = 100

// Watch has functions that receive the results and the progress of a check. Each may be nil.
type Watch struct {
	Problem func(string)
	Items   func(n int)          // more items have been checked
	Pause   func(keys int) error // called between steps, with the keys read since; an error ends the check
}

// Check verifies a container: every item has its number, index, unique, ttl and feed entries, and every entry has its
// item; heads and logical heads agree with the items; checksums are right; LSNs are in order and below the counter. It
// reports problems as text. Writers may continue: each slot is checked over one snapshot. Data that can't be read is a
// problem. An error is returned only if the check itself fails: see cutOff.
//
// Check uses the same memory for any number of items. For each kind it sums the hashes of the entries that items need,
// and of the entries that exist. If the two sums of a kind are equal, the entries are too. If they differ, each entry
// is looked up to name those that differ.
//
// Example: an item needs the index entries a and b, and the slot has a and c. The sums hash(a)+hash(b) and
// hash(a)+hash(c) differ. The second pass reports that b is missing and that c has no item.
func (c *Container) Check(ctx context.Context, w Watch) error {
	k := &checker{c: c, ctx: ctx, w: w}
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	for place := []byte(nil); ; {
		sl := c.Slots().at(place)
		err := k.slot(sl)
		if errors.Is(err, errLeft) { // others hold its placements now
			continue
		}
		if place = sl.max; err != nil || k.problems >= maxProblems {
			return err
		}
		if place == nil {
			return c.checkDeclared(k)
		}
	}
}

// errLeft is the error for a slot that is not in the map any more.
var errLeft = errors.New("the slot has left the map")

type checker struct {
	c        *Container
	ctx      context.Context
	w        Watch
	problems int
	sl       *Slot
	snap     kv.Snapshot
	up       upkeep
	bare     bool // Head.bare
	stale    bool // Head.Stale
	read     int  // keys since the last pause
	naming   bool
	unread   bool // some items can't be read, so the entries that they need are unknown
	ends     readEnds
	sums     [256]entrySum // needed entries minus existing entries, by kind
	odd      map[keys.Kind]bool
	logicals *logicalCheck
	head     Head
	lsn      int64             // of the slot's last commit
	given    uint64            // no item has a greater counter
	limit    int64             // no commit has a greater LSN
	lowest   uint64            // least counter of an item
	oldest   int64             // least LSN of an item
	floor    int64             // Head.LogFloor
	kept     map[uint64][]byte // facts that the slot keeps in memory, in stored form
	facts    facts             // exact facts
	counted  []index.Counts    // the items' entries at the paths of the facts
	unique   []*index.Declared // that are ready
}

// entrySum is the sum of the hashes of a set of entries, and their number.
type entrySum struct{ hash, mixed, n uint64 }

func (s *entrySum) add(key, val []byte, sign uint64) {
	h := xxhash.Sum64(key) ^ xxhash.Sum64(val)*0x9E3779B97F4A7C15
	s.hash += sign * h
	s.mixed += sign * (h ^ h>>29) * 0xBF58476D1CE4E5B9
	s.n += sign
}

const (
	wanted = 1
	there  = ^uint64(0) // -1
)

// derivedKinds are the kinds of entries that are derived from items.
var derivedKinds = []keys.Kind{keys.KindNumber, keys.KindIndex, keys.KindUnique, keys.KindFeed, keys.KindTTL}

// cutOff returns the error of a check if one of its reads has failed with err for a reason that is no damage: the check
// was ended, its snapshot became too old, or the other machines of the engine don't answer. A local disk that doesn't
// read is damage.
func (k *checker) cutOff(err error) error {
	if ended := k.ctx.Err(); ended != nil {
		return translate(ended)
	}
	if errors.Is(err, kv.ErrClosed) || errors.Is(err, kv.ErrSnapshotTooOld) ||
		errors.Is(err, kv.ErrUnavailable) && k.c.st.eng.Remote() {
		return translate(err)
	}
	return nil
}

// bad reports a problem.
func (k *checker) bad(format string, args ...any) {
	if k.problems++; k.problems <= maxProblems && k.w.Problem != nil {
		k.w.Problem(fmt.Sprintf("container %q slot %d: ", k.c.Def().ID, k.sl.key.ID) + fmt.Sprintf(format, args...))
	}
}

// checkStep is the number of keys after which a check pauses.
const checkStep = 512

// step is called for every key that is read.
func (k *checker) step() error {
	if k.read++; k.read < checkStep {
		return nil
	}
	n := k.read
	k.read = 0
	if err := k.ctx.Err(); err != nil {
		return translate(err)
	}
	if k.w.Pause != nil {
		return k.w.Pause(n)
	}
	return nil
}

func (k *checker) slot(sl *Slot) (err error) {
	if err := k.begin(sl); err != nil {
		return err
	}
	defer k.snap.Close()
	defer k.logicals.release()
	defer func() { // no stored byte may end the process
		if r := recover(); r != nil {
			k.bad("the check can't go on: %v", r)
		}
	}()
	if err := k.readFacts(); err != nil {
		return err
	}
	if err := k.items(k.item); err != nil {
		return err
	}
	if k.up.next == nil {
		for _, kind := range derivedKinds {
			if err := k.entries(kind, func(key, val []byte) error {
				k.sums[kind].add(key, val, there)
				return nil
			}); err != nil {
				return err
			}
			if k.sums[kind] != (entrySum{}) {
				k.odd[kind] = true
			}
		}
	} else { // there may be entries of two policies: sums can't be compared
		for _, kind := range derivedKinds {
			k.odd[kind] = true
		}
	}
	if len(k.odd) > 0 {
		if err := k.name(); err != nil {
			return err
		}
	}
	if err := k.log(); err != nil {
		return err
	}
	if err := k.strangers(); err != nil {
		return err
	}
	if err := k.heads(); err != nil {
		return err
	}
	return translate(k.ctx.Err())
}

func (k *checker) begin(sl *Slot) (err error) {
	k.sl, k.sums, k.odd, k.unread, k.naming = sl, [256]entrySum{}, map[keys.Kind]bool{}, false, false
	k.ends = readEnds{}
	k.head, k.facts, k.counted = Head{}, facts{}, nil
	sl.mu.Lock() // the snapshot and the index version must belong together
	defer sl.mu.Unlock()
	if !k.c.Slots().has(sl) {
		return errLeft
	}
	if k.snap, err = k.c.st.eng.Snapshot(k.ctx); err != nil {
		return translate(err)
	}
	if k.given, k.limit = k.c.counter.numbers(), k.c.counter.limit(); k.c.st.others {
		if err := k.c.checkShared(k); err != nil {
			_ = k.snap.Close()
			return err
		}
	}
	if k.up, k.lsn = k.c.upkeepOf(k.ctx, sl), sl.head.LSN; k.up.lost {
		_ = k.snap.Close()
		return translate(kv.ErrUnavailable)
	}
	k.bare, k.stale = sl.head.bare(), sl.head.Stale
	k.kept = make(map[uint64][]byte, len(sl.facts.Load().all()))
	for _, f := range sl.facts.Load().all() {
		k.kept[f.path] = f.stored()
	}
	k.unique = slices.DeleteFunc(slices.Clone(k.c.declares()), func(d *index.Declared) bool {
		return d.State != catalog.IndexReady
	})
	k.lowest, k.oldest = math.MaxUint64, math.MaxInt64
	k.floor = sl.head.LogFloor
	k.logicals = &logicalCheck{k: k}
	return nil
}

// entries calls f for every key of a kind. Data that can't be read is a problem and ends the walk.
func (k *checker) entries(kind keys.Kind, f func(key, val []byte) error) error {
	lo, hi := keys.KindBounds(k.sl.key, kind)
	var failed error
	var last []byte
	err := each(k.snap, lo, hi, func(key, val []byte) error {
		last = append(last[:0], key...)
		if failed = k.step(); failed == nil {
			failed = f(key, val)
		}
		return failed
	})
	if err != nil && failed == nil {
		if err := k.cutOff(err); err != nil {
			return err
		}
		k.unread = true
		if last == nil {
			last = lo
		}
		if k.ends.add(kind, last) {
			k.bad("keys behind %x can't be read: %v", last[keys.PrefixLen-1:], err)
		}
		return nil
	}
	return failed
}

// readEnds are the last keys that could be read, by kind. Keys behind them are not looked up: a look-up that meets
// damage takes up to a second, and there are as many as there are keys in the damaged table.
//
// Example: the index of a table with 20,000 items is damaged. Their 500,000 index entries can be read, but none of them
// is compared with its item.
type readEnds map[keys.Kind][]byte

// add records that nothing behind last can be read, and reports whether that is new for the kind.
func (e readEnds) add(kind keys.Kind, last []byte) bool {
	if e[kind] != nil {
		return false
	}
	e[kind] = last
	return true
}

// passed reports whether a key is behind what can be read.
func (e readEnds) passed(kind keys.Kind, key []byte) bool {
	return e[kind] != nil && bytes.Compare(key, e[kind]) > 0
}

// items calls f for every valid item.
func (k *checker) items(f func(it *checked) error) error {
	return k.entries(keys.KindItem, func(key, val []byte) error {
		it, problem := k.decode(key[keys.PrefixLen:], val)
		if problem != "" {
			k.unread = true
			if !k.naming {
				k.bad("item %x %s", key[keys.PrefixLen:], problem)
			}
			return nil
		}
		return f(it)
	})
}

// checked is an item that was read.
type checked struct {
	Item
	at identity
}

// decode reads an item. problem describes what is wrong with it.
func (k *checker) decode(suffix, val []byte) (it *checked, problem string) {
	it = &checked{}
	v := View{c: k.c, snap: k.snap}
	if err := verifyEnvelope(val); err != nil {
		return nil, err.Error()
	}
	if len(suffix) <= k.c.placeLen() {
		return nil, "has a key that is cut"
	}
	if _, err := v.Decode(&it.Item, suffix, val); err != nil {
		return nil, err.Error()
	}
	pk, id, err := k.c.keyOf(it.Doc)
	if err != nil {
		return nil, fmt.Sprintf("has no identity: %v", err)
	}
	it.at, err = k.c.locate(nil, pk, id)
	switch {
	case err != nil || !bytes.Equal(it.at.suffix, suffix):
		return nil, "stands under another key than its document says"
	case !k.sl.holds(it.at.place):
		return nil, "stands in the wrong slot"
	}
	return it, ""
}

// wants calls f for every entry that an item must have.
func (k *checker) wants(it *checked, t *index.Terms, f func(kind keys.Kind, key, val []byte) error) error {
	s := k.sl.key
	if err := f(keys.KindNumber, keys.AppendNumber(nil, s, Counter(it.Number)), it.at.suffix); err != nil {
		return err
	}
	if err := f(keys.KindFeed, keys.AppendFeed(nil, s, uint64(it.LSN), it.Pos), it.at.suffix); err != nil {
		return err
	}
	if it.TTL > 0 {
		if err := f(keys.KindTTL, keys.AppendTTL(nil, s, uint64(it.TS()+int64(it.TTL)), it.at.suffix),
			[]byte{1}); err != nil {
			return err
		}
	}
	for n, u := range k.c.uniques {
		key := keys.AppendUnique(nil, s, it.at.tuple, uint16(n), u.appendValues(nil, it.Doc))
		if err := f(keys.KindUnique, key, it.at.ident[len(it.at.tuple):]); err != nil {
			return err
		}
	}
	var room []byte
	layout := k.c.Entries()
	for i := range t.Len() {
		term, flag := t.At(i)
		room = layout.Append(room[:0], s, term, it.Number, it.ident)
		if err := f(keys.KindIndex, room, []byte{flag}); err != nil {
			return err
		}
	}
	return nil
}

// item adds the entries that an item needs to the sums.
func (k *checker) item(it *checked) error {
	if k.w.Items != nil {
		k.w.Items(1)
	}
	t := k.up.termsNeeded(&it.Item)
	defer termsPool.Put(t)
	err := k.wants(it, t, func(kind keys.Kind, key, val []byte) error {
		k.sums[kind].add(key, val, wanted)
		return nil
	})
	if err == nil {
		err = k.lacksEntries(it)
	}
	if err != nil {
		return err
	}
	more := flagsOf(t, it.ident)
	k.head.addFlags(&more)
	k.head.Ticks = max(k.head.Ticks, it.Ticks)
	k.lowest, k.oldest = min(k.lowest, Counter(it.Number)), min(k.oldest, it.LSN)
	k.version(it.at.suffix, &it.Item, wanted)
	if Counter(it.Number) > k.given || !k.c.mayNumber(it.at.place, it.Number) {
		k.bad("item %x has number %x, which was never given out for it", it.at.suffix, it.Number)
	}
	t.Count(k.facts.paths, k.counted, 1)
	size := storedSize(it.at, &it.Item)
	k.head.Items++
	k.head.Bytes += size
	k.head.LSN = max(k.head.LSN, it.LSN)
	if k.c.Def().KeyIsID() {
		return nil // there are no logical heads; an older version has left some
	}
	return k.logicals.item(it, size)
}
