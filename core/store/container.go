package store

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Container is the run-time state of one container generation. It is safe for concurrent use.
type Container struct {
	st        *Store
	gen       uint32
	def       atomic.Pointer[catalog.Container]
	pol       atomic.Pointer[index.Policy] // the policy that queries use: every slot has all of its entries
	known     atomic.Pointer[policies]     // all policies that index entries may follow
	resets    atomic.Uint32                // goes up before a rebuild removes anything from a slot's flags
	slots     atomic.Pointer[Slots]        // see Slots
	uniques   []unique
	declared  atomic.Pointer[declared] // nil: none
	roamed    sync.Map                 // where walks over dates go on, by atRoam: see dateWalk
	declareMu latch                    // allows one change of the declared indexes at a time
	counter   counter
	follows   atomic.Uint64 // version of the catalog that def and slots follow, with a shared engine: see look
	dropped   atomic.Bool
	unborn    bool                      // exists only in the Transaction that creates it
	used      atomic.Uint32             // Store.turn when it was last requested; 0 = only by background work
	filtering atomic.Bool               // id filters are being made
	sets      atomic.Pointer[valueSets] // nil: there are none
	asked     setsAsked
	raising   atomic.Bool  // floors are being raised
	logs      atomic.Bool  // commits of some slot may write its log
	fell      atomic.Int64 // LSN of the first commit after the clock was last set back
	warned    atomic.Int64 // when that was logged last, by realTime; 0: never
	counts    counts
	ordered   Ordered
	news      News
	meterMu   sync.Mutex        // guards metered
	metered   map[int]*ru.Meter // by the id of the physical partition: see Meters
	mapMu     latch             // allows one change of the slot map at a time; taken after latches
	defMu     latch             // allows one update at a time; also guards rb
	logMu     latch             // allows one change of the slots' logs at a time: see followLog
	rb        rebuild
}

// Slot is a fixed share of the hash. Its id always stands for the same placements. The latch guards head and headBytes.
// The atomics may be read without it.
type Slot struct {
	c       *Container
	key     keys.Slot
	min     []byte // the placements [min, max); a nil max is open
	max     []byte
	headKey [keys.PrefixLen]byte

	// losers is held by a write that has lost a race, until it has finished. It is taken before mu. A goroutine that
	// runs takes the latch more often than those that wait for it. So without losers, most of many writes that try
	// again together would lose again.
	losers latch
	turns  turns        // of transactions
	joint  joint        // of writers with a shared engine
	rivals atomic.Int32 // how many of the next attempts hold the slot: see contested
	calm   atomic.Bool  // the last commit of several writes has found the head as it is in memory: see trust

	mu        latch // the latch
	head      Head
	headBytes []byte
	unread    []byte // the stored head that head replaces, renewed; nil = none
	spare     []byte // memory for the next headBytes
	unsure    int64  // the greatest LSN of a commit whose outcome was unknown: see findOut
	behind    bool   // the container's definition may be older than the head: see caughtUp
	trimAt    int64  // the log isn't trimmed before this time, in ticks; guarded by the latch
	leastNew  uint64 // least counter of an item that was written since then

	// begun is the LSN of the last commit that was passed to the engine. It is set before the engine has the commit. So
	// if a goroutine reads begun after it has read from the slot, begun covers all that it has read. While nobody holds
	// the latch begun equals head.LSN. The exception is a commit that panicked or whose outcome is unknown: see
	// certain.
	begun atomic.Int64

	lsn     atomic.Int64  // head.LSN
	upkeep  atomic.Uint64 // head.Index, head.Next and head.Phase
	items   atomic.Int64
	bytes   atomic.Int64
	durable atomic.Int64 // every commit up to this LSN is durable
	last    atomic.Pointer[lastCommit]
	taking  atomic.Int64 // lower bound of the LSNs of a commit that isn't visible yet; 0 = there is none: see Settled
	flags   atomic.Pointer[indexFlags]

	facts atomic.Pointer[facts] // nil: none. Changes under the latch
	room  *factRoom             // memory of commits for facts; nil: there never were any

	ids      atomic.Pointer[idFilter]
	idsNext  *idFilter   // the filter that is being made: guarded by the latch
	sets     []*valueSet // of values at some paths; guarded by the latch
	noFilter atomic.Bool // the slot has too many items for a filter, or can't be read
	outdated int32       // entries removed since the floors were last raised (removed); guarded by the latch

	roamed atomic.Uint64 // where the next walk over the oldest run of the feed begins, when that has no order: see Reap
	reaped atomic.Uint64 // LSN << 16 | position in the feed below which all items have a ttl of their own: see Reap

	rb slotRebuild
}

// publish copies the head to the atomics. The caller holds the latch or is the only user.
func (s *Slot) publish() {
	s.begun.Store(s.head.LSN)
	s.lsn.Store(s.head.LSN)
	if up := s.head.upkeep(); s.upkeep.Load() != up {
		s.dropSets()
		s.upkeep.Store(up)
	}
	s.items.Store(s.head.Items)
	s.bytes.Store(s.head.Bytes)
	if flags := s.head.held(); s.flags.Load() != flags {
		s.flags.Store(flags)
	}
}

// Def returns the container's definition.
func (c *Container) Def() *catalog.Container { return c.def.Load() }

// Name returns the names of the database and the container, for logs.
func (c *Container) Name() string {
	d := c.def.Load()
	return d.Database + "/" + d.ID
}

// Policy returns the compiled indexing policy that queries use: the previous one until a rebuild is complete.
func (c *Container) Policy() *index.Policy { return c.pol.Load() }

// NewestPolicy returns the compiled indexing policy of the newest definition, also during the rebuild for it.
func (c *Container) NewestPolicy() *index.Policy {
	def := c.def.Load()
	if p := c.known.Load().at(def.IndexVersion); p != nil {
		return p
	}
	return c.pol.Load()
}

// Items returns the exact number of items, including expired ones that are not reaped yet.
func (c *Container) Items() (n int64) {
	for _, s := range c.slotList() {
		n += s.items.Load()
	}
	return n
}

// Bytes returns the size of all items: keys and values.
func (c *Container) Bytes() (n int64) {
	for _, s := range c.slotList() {
		n += s.bytes.Load()
	}
	return n
}

// GivenLSN returns the greatest LSN that a commit of the container has received, durable or not. With a shared engine
// it is the greatest one that this process knows.
func (c *Container) GivenLSN() int64 { return c.counter.given.Load() }

// identity is the place of an item: its slot, and the parts of its keys.
type identity struct {
	slot    *Slot
	version uint64 // of the map in which the slot was found
	place   []byte
	tuple   []byte
	ident   []byte // tuple, id
	suffix  []byte // place, tuple, id
}

// locate finds the place of a partition key and id. buf's memory is used; the result's slices point into it.
func (c *Container) locate(buf []byte, pk PartitionKey, id value.Value) (identity, error) {
	d := c.def.Load()
	if len(pk) != len(d.PartitionKey.Paths) {
		return identity{}, status.WithSub(status.BadRequest, status.SubPartitionKeyMismatch,
			"The partition key has %d components, the container's definition has %d.", len(pk),
			len(d.PartitionKey.Paths))
	}
	if d.PartitionKey.Scalar {
		pk = scalars(pk)
	}
	buf = epk.Place(buf[:0], d.PartitionKey.EPKKind(), pk)
	np := len(buf)
	for _, v := range pk {
		buf = keys.AppendExact(buf, v)
	}
	nt := len(buf)
	if id.IsDefined() {
		buf = keys.AppendExact(buf, id)
	}
	if len(buf)-np > keys.MaxIdentity {
		return identity{}, status.New(status.BadRequest, "The partition key and id are %d bytes long; at most %d "+
			"are allowed.", len(buf)-np, keys.MaxIdentity)
	}
	at := identity{place: buf[:np:np], tuple: buf[np:nt:nt], ident: buf[np:], suffix: buf}
	c.relocate(&at)
	return at, nil
}

// SlotOf returns the slot of a partition key.
func (c *Container) SlotOf(pk PartitionKey) (*Slot, error) {
	var room [128]byte
	at, err := c.locate(room[:0], pk, value.Value{})
	return at.slot, err
}

// place20 returns the 20 bits of a placement with which an item number begins: the first 20 bits of the hash; with
// MultiHash 10 bits of level one and 10 of the whole key. (A V2 hash has 126 bits: its two top bits are always zero and
// left out.)
func place20(k epk.Kind, place []byte) uint64 {
	switch k {
	case epk.V1:
		return uint64(binary.BigEndian.Uint32(place) >> 12)
	case epk.V2:
		return uint64(binary.BigEndian.Uint32(place) << 2 >> 12)
	}
	var last uint32
	for at := 16; at < len(place); at += 16 {
		last ^= binary.BigEndian.Uint32(place[at:])
	}
	return uint64(binary.BigEndian.Uint32(place)<<2>>22)<<10 | uint64(last<<2>>22)
}

// keyOf reads the partition key and id of a document by the definition.
func (c *Container) keyOf(doc []byte) (PartitionKey, value.Value, error) {
	return c.appendKey(make(PartitionKey, 0, len(c.keyPaths())), doc)
}

// appendKey appends the partition key of a document to dst.
func (c *Container) appendKey(dst PartitionKey, doc []byte) (PartitionKey, value.Value, error) {
	id := value.ObjectOf(doc).Get("_id")
	if !id.IsDefined() {
		return nil, id, status.New(status.BadRequest, "The input content is invalid because the required properties "+
			"- 'id; ' - are missing")
	}
	def := c.def.Load()
	for _, segs := range def.KeyPaths() {
		dst = append(dst, lookupSegs(doc, segs))
	}
	if def.PartitionKey.Scalar {
		dst = scalars(dst)
	}
	return dst, id, nil
}

// scalars returns a partition key in which arrays and objects are missing values. It is a call in the paths of writes,
// because its code would be in many places otherwise.
//
//go:noinline
func scalars(pk PartitionKey) PartitionKey {
	shared := true
	for i := range pk {
		if k := pk[i].Kind(); k == value.Array || k == value.Object {
			if shared {
				pk, shared = slices.Clone(pk), false
			}
			pk[i] = value.Undef()
		}
	}
	return pk
}

// KeyOf returns the partition key and id of a document. Their values point into the document, but for arrays and
// objects that count as missing.
func (c *Container) KeyOf(doc []byte) (PartitionKey, value.Value, error) { return c.keyOf(doc) }

func lookupSegs(doc []byte, segs []string) value.Value {
	v := value.ObjectOf(doc)
	for _, s := range segs {
		v = v.Get(s)
	}
	return v
}

// keyPaths returns the stored segments of the partition key's paths.
func (c *Container) keyPaths() [][]string { return c.def.Load().KeyPaths() }

// PlaceLen is the length of a complete placement.
func (c *Container) PlaceLen() int { return c.placeLen() }

// DecodeKey reads the partition key at the front of an identity or a tuple; it points into it.
func (c *Container) DecodeKey(ident []byte) (PartitionKey, error) {
	pk := make(PartitionKey, 0, 3)
	for range c.keyPaths() {
		v, rest, err := keys.DecodeExact(ident)
		if err != nil {
			return nil, err
		}
		pk, ident = append(pk, v), rest
	}
	return pk, nil
}

func (c *Container) placeLen() int {
	d := c.def.Load()
	switch k := d.PartitionKey.EPKKind(); k {
	case epk.V1:
		return 4
	case epk.MultiHash:
		return 16 * len(d.PartitionKey.Paths)
	default:
		return 16
	}
}

// prefix returns the placement and tuple bytes of a partition key that has fewer values than the definition has paths.
func (c *Container) prefix(pk PartitionKey) (place, tuple []byte) {
	place = epk.Place(nil, c.def.Load().PartitionKey.EPKKind(), pk)
	for _, v := range pk {
		tuple = keys.AppendExact(tuple, v)
	}
	return place, tuple
}

// AppendPlace appends the placement of an identity (tuple, id).
func (c *Container) AppendPlace(dst, ident []byte) ([]byte, error) { return c.appendPlace(dst, ident) }

// NumberPrefix returns the first three bytes of the order numbers of all items with a placement. It returns nil if the
// placement doesn't determine them.
func (c *Container) NumberPrefix(place []byte) []byte {
	if c.Entries().ByID {
		return nil
	}
	n := place20(c.Def().PartitionKey.EPKKind(), place)
	return []byte{byte(n >> 16), byte(n >> 8), byte(n)}
}

// appendPlace appends the placement of an identity (tuple, id).
func (c *Container) appendPlace(dst, ident []byte) ([]byte, error) {
	d := c.def.Load()
	var mem [3]value.Value
	pk := mem[:0]
	rest := ident
	for range d.PartitionKey.Paths {
		v, r, err := keys.DecodeExact(rest)
		if err != nil {
			return dst, status.Wrap(status.Corruption, err, "malformed identity")
		}
		pk, rest = append(pk, v), r
	}
	return epk.Place(dst, d.PartitionKey.EPKKind(), pk), nil
}
