package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// formatCatalog is the first byte of every catalog entry; the JSON of the entry follows.
const formatCatalog = 1

// Settings that the partition map depends on.
type Settings struct {
	PartitionThroughput int // most RU/s of one physical partition; 0 = 10,000
	MinSlots            int // least slots of a container; 0 = four for each of its partitions
}

// Catalog is the set of databases and containers. Safe for concurrent use.
type Catalog struct {
	eng kv.Engine
	clk *clock.Clock
	set Settings
	mu  sync.Mutex // one writer at a time
	cur atomic.Pointer[state]

	unsure bool // the outcome of a commit is unknown: read the store again before the next one; under mu
}

// state is never changed after it was stored in Catalog.cur.
type state struct {
	account    account
	dbs        map[string]*Database
	dbNums     map[uint32]*Database
	containers map[string]map[string]*Container // database id -> container id
	rids       map[[8]byte]*Container
	shelves    map[uint32]shelf // database number -> its other resources

	fold folded
}

type account struct {
	NextDB        uint32 `json:"nextDb"`
	NextContainer uint32 `json:"nextContainer"`
	NextGen       uint32 `json:"nextGen"`
	NextVersion   uint64 `json:"nextVersion"`
	NextResource  uint32 `json:"nextResource,omitempty"` // absent in older stores: 0 is 1
}

// firstAccount are the counters of an empty catalog.
var firstAccount = account{NextDB: 0x10000001, NextContainer: 1, NextGen: 1, NextVersion: 1}

// Open reads the catalog of a store; an empty store has an empty catalog.
func Open(eng kv.Engine, clk *clock.Clock, set Settings) (*Catalog, error) {
	if set.PartitionThroughput <= 0 {
		set.PartitionThroughput = 10000
	}
	c := &Catalog{eng: eng, clk: clk, set: set}
	st, err := load(eng)
	if err != nil {
		return nil, err
	}
	c.cur.Store(st)
	return c, nil
}

func load(eng kv.Engine) (*state, error) {
	st := &state{
		account: firstAccount,
		dbs:     map[string]*Database{}, dbNums: map[uint32]*Database{},
		containers: map[string]map[string]*Container{}, rids: map[[8]byte]*Container{}, shelves: map[uint32]shelf{},
	}
	b, err := eng.Get(keys.AppendMeta(nil, keys.MetaAccount, 0, ""))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return st, nil
	case err != nil:
		return nil, err
	}
	if err := decode(b, &st.account); err != nil {
		return nil, err
	}
	snap := eng.Snapshot()
	defer snap.Close()
	if err := each(snap, keys.MetaDatabase, func(b []byte) error {
		d := &Database{}
		if err := decode(b, d); err != nil {
			return err
		}
		st.addDatabase(d)
		return nil
	}); err != nil {
		return nil, err
	}
	err = each(snap, keys.MetaContainer, func(b []byte) error {
		c := &Container{}
		if err := decode(b, c); err != nil {
			return err
		}
		d := st.dbNums[c.DBNum]
		if d == nil {
			return status.New(status.Corruption, "container %q has no database", c.ID)
		}
		c.Database = d.ID
		if err := c.prepare(); err != nil {
			return status.Wrap(status.Corruption, err, "catalog entry is malformed")
		}
		if err := c.verify(); err != nil {
			return err
		}
		st.addContainer(c)
		return nil
	})
	if err == nil {
		err = st.loadResources(snap)
	}
	return st, err
}

func each(snap kv.Snapshot, k keys.MetaKind, f func([]byte) error) error {
	lo, hi := keys.MetaBounds(k)
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Value()); err != nil {
			return err
		}
	}
	return it.Err()
}

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append([]byte{formatCatalog}, b...), err
}

func decode(b []byte, v any) error {
	if len(b) == 0 || b[0] != formatCatalog {
		return status.New(status.Corruption, "catalog entry of unknown format")
	}
	if err := json.Unmarshal(b[1:], v); err != nil {
		return status.Wrap(status.Corruption, err, "catalog entry is malformed")
	}
	return nil
}

func (s *state) addDatabase(d *Database) {
	s.dbs[d.ID], s.dbNums[d.Num] = d, d
	if s.containers[d.ID] == nil {
		s.containers[d.ID] = map[string]*Container{}
	}
}

func (s *state) addContainer(c *Container) {
	s.containers[c.Database][c.ID] = c
	s.rids[c.RID()] = c
}

// clone copies the maps; entries are shared because they never change.
func (s *state) clone() *state {
	n := &state{account: s.account, dbs: map[string]*Database{}, dbNums: map[uint32]*Database{},
		containers: map[string]map[string]*Container{}, rids: map[[8]byte]*Container{}, shelves: maps.Clone(s.shelves)}
	for _, d := range s.dbs {
		n.addDatabase(d)
	}
	for _, m := range s.containers {
		for _, c := range m {
			n.addContainer(c)
		}
	}
	return n
}

// ErrNoDatabase and ErrNoContainer are the errors for missing parents and resources.
func errNoDatabase(id string, sub int) error {
	return status.WithSub(status.NotFound, sub, "Resource Not Found: database %q", id)
}

func errNoContainer(id string, sub int) error {
	return status.WithSub(status.NotFound, sub, "Resource Not Found: container %q", id)
}

// Database returns a database; NotFound when there is none.
func (c *Catalog) Database(id string) (*Database, error) {
	if d := c.cur.Load().dbs[id]; d != nil {
		return d, nil
	}
	return nil, errNoDatabase(id, 0)
}

// DatabaseByRID returns the database with these 4 bytes of _rid.
func (c *Catalog) DatabaseByRID(rid [4]byte) (*Database, error) {
	if d := c.cur.Load().dbNums[uint32(rid[0])<<24|uint32(rid[1])<<16|uint32(rid[2])<<8|uint32(rid[3])]; d != nil {
		return d, nil
	}
	return nil, errNoDatabase("", 0)
}

// Databases returns all databases in the order of their creation.
func (c *Catalog) Databases() []*Database {
	st := c.cur.Load()
	out := make([]*Database, 0, len(st.dbs))
	for _, d := range st.dbs {
		out = append(out, d)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Num < out[j].Num })
	return out
}

// Container returns a container. A missing database is NotFound with sub-status 1003, a missing container NotFound.
func (c *Catalog) Container(db, id string) (*Container, error) {
	m, ok := c.cur.Load().containers[db]
	if !ok {
		return nil, errNoDatabase(db, status.SubOwnerNotFound)
	}
	if k := m[id]; k != nil {
		return k, nil
	}
	return nil, errNoContainer(id, 0)
}

// ContainerByRID returns the container with these 8 bytes of _rid.
func (c *Catalog) ContainerByRID(rid [8]byte) (*Container, error) {
	if k := c.cur.Load().rids[rid]; k != nil {
		return k, nil
	}
	return nil, errNoContainer("", 0)
}

// Containers returns the containers of a database in the order of their creation.
func (c *Catalog) Containers(db string) ([]*Container, error) {
	m, ok := c.cur.Load().containers[db]
	if !ok {
		return nil, errNoDatabase(db, status.SubOwnerNotFound)
	}
	out := make([]*Container, 0, len(m))
	for _, k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Num < out[j].Num })
	return out, nil
}

// commit writes a batch with the account's counters, waits until it is durable and makes the new state visible.
func (c *Catalog) commit(ctx context.Context, next *state, b *kv.Batch) error {
	acc, err := encode(next.account)
	if err != nil {
		return err
	}
	b.Put(keys.AppendMeta(nil, keys.MetaAccount, 0, ""), acc)
	w, err := c.eng.Write(ctx, b, nil)
	if err == nil {
		err = w.Wait()
	}
	if err != nil {
		if errors.Is(err, kv.ErrUnknownOutcome) {
			c.unsure = true
			if st, err := load(c.eng); err == nil {
				c.cur.Store(st)
				c.unsure = false
			}
		}
		return translate(err)
	}
	c.cur.Store(next)
	return nil
}

// next returns a copy of the present state to change. The caller holds mu.
func (c *Catalog) next() (*state, error) {
	if c.unsure {
		st, err := load(c.eng)
		if err != nil {
			return nil, translate(err)
		}
		c.cur.Store(st)
		c.unsure = false
	}
	return c.cur.Load().clone(), nil
}

// translate turns an engine's error into a status.
func translate(err error) error {
	var e *status.Error
	var r *kv.Refusal
	switch {
	case errors.As(err, &e):
		return err
	case errors.As(err, &r):
		return r.Status()
	case errors.Is(err, kv.ErrFull):
		return status.Wrap(status.StoreFull, err, "The server's disk is full.")
	case errors.Is(err, kv.ErrTooLarge):
		return status.Wrap(status.TooLarge, err, "Request size is too large")
	case errors.Is(err, kv.ErrUnknownOutcome):
		return status.Wrap(status.UnknownOutcome, err, "The outcome of the change is unknown.")
	case errors.Is(err, kv.ErrCorruption):
		return status.Wrap(status.Corruption, err, "Stored data is corrupt.")
	}
	return status.Wrap(status.Unavailable, err, "The store is not available.")
}

func databaseKey(d *Database) []byte { return keys.AppendMeta(nil, keys.MetaDatabase, 0, d.ID) }

func containerKey(k *Container) []byte {
	return keys.AppendMeta(nil, keys.MetaContainer, k.DBNum, k.ID)
}

// CreateDatabase adds a database; Conflict when the id is taken.
func (c *Catalog) CreateDatabase(ctx context.Context, id string, t Throughput) (*Database, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, err
	}
	if next.dbs[id] != nil {
		return nil, status.New(status.Conflict, "Resource with specified id or name already exists.")
	}
	d := &Database{ID: id, Num: next.account.NextDB, Version: next.account.NextVersion, TS: c.clk.Now().Unix(), Throughput: t}
	next.account.NextDB++
	next.account.NextVersion++
	next.addDatabase(d)
	return d, c.put(ctx, next, databaseKey(d), d)
}

func (c *Catalog) put(ctx context.Context, next *state, key []byte, v any) error {
	e, err := encode(v)
	if err != nil {
		return err
	}
	var b kv.Batch
	b.Put(key, e)
	return c.commit(ctx, next, &b)
}

// ReplaceDatabase changes a database's throughput.
func (c *Catalog) ReplaceDatabase(ctx context.Context, id string, t Throughput) (*Database, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, err
	}
	old := next.dbs[id]
	if old == nil {
		return nil, errNoDatabase(id, 0)
	}
	d := *old
	d.Throughput, d.TS, d.Version = t, c.clk.Now().Unix(), next.account.NextVersion
	next.account.NextVersion++
	next.addDatabase(&d)
	return &d, c.put(ctx, next, databaseKey(&d), &d)
}

// DropDatabase removes a database and returns its containers, whose ranges the caller drops.
func (c *Catalog) DropDatabase(ctx context.Context, id string) ([]*Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, err
	}
	d := next.dbs[id]
	if d == nil {
		return nil, errNoDatabase(id, 0)
	}
	b := kv.Batch{Frees: true}
	var gone []*Container
	for _, k := range next.containers[id] {
		gone = append(gone, k)
		deleteContainer(&b, k)
		delete(next.rids, k.RID())
	}
	b.Delete(databaseKey(d))
	delete(next.dbs, id)
	delete(next.dbNums, d.Num)
	delete(next.containers, id)
	for _, r := range next.shelves[d.Num] {
		b.Delete(r.key())
	}
	delete(next.shelves, d.Num)
	return gone, c.commit(ctx, next, &b)
}

// CreateContainer adds a container with its slots and physical partitions; Conflict when the id is taken. head is the
// first value of every slot's head, written in the same commit: a writer that finds no head knows that the container is
// gone.
func (c *Catalog) CreateContainer(ctx context.Context, db string, spec Spec, head []byte) (*Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, err
	}
	d := next.dbs[db]
	if d == nil {
		return nil, errNoDatabase(db, status.SubOwnerNotFound)
	}
	if c.taken(db, spec.ID, spec.FoldID) {
		return nil, status.New(status.Conflict, "Resource with specified id or name already exists.")
	}
	if t := spec.Throughput; t.Manual < 0 || t.AutoscaleMax < 0 || t.Max()/c.set.PartitionThroughput > maxPartitions {
		return nil, status.New(status.BadRequest, "The throughput is out of range.")
	}
	k := &Container{Spec: spec.Clone(), Database: db, DBNum: d.Num, Num: next.account.NextContainer | 1<<31,
		Gen: next.account.NextGen, Version: next.account.NextVersion, TS: c.clk.Now().Unix(), IndexVersion: 1}
	if err := k.prepare(); err != nil {
		return nil, err
	}
	next.account.NextContainer++
	next.account.NextGen++
	next.account.NextVersion++
	c.layOut(k)
	next.addContainer(k)
	e, err := encode(k)
	if err != nil {
		return nil, err
	}
	var b kv.Batch
	b.Put(containerKey(k), e)
	for i := range k.Slots {
		b.Put(keys.AppendPrefix(nil, k.SlotKey(i), keys.KindHead), head)
	}
	return k, c.commit(ctx, next, &b)
}

// maxPartitions bounds what a container's throughput may ask for: each partition has its slots in memory.
const maxPartitions = 4096

// slotsPerPartition is a compromise: a query over all partitions seeks in each slot (at 100,000 items of 1 KB an
// equality or a range takes a fifth less with 4 slots than with 16), while a partition splits at slot boundaries and
// writes into different slots don't meet.
const slotsPerPartition = 4

// layOut gives a new container its slots, equal shares of the hash, and N = ceil(T/t) physical partitions over them.
func (c *Catalog) layOut(k *Container) {
	n := max(1, (k.Throughput.Max()+c.set.PartitionThroughput-1)/c.set.PartitionThroughput)
	slots := slotsPerPartition * n
	if c.set.MinSlots > 0 {
		slots = (max(c.set.MinSlots, n) + n - 1) / n * n // partitions begin at slot boundaries and are equal
	}
	k.Slots = make([]SlotDef, slots)
	for i, min := range epk.Split(k.PartitionKey.EPKKind(), slots) {
		k.Slots[i+1].Min = min
	}
	for i := range k.Slots {
		k.Slots[i].ID = uint32(i + 1)
	}
	k.NextSlot = uint32(slots + 1)
	for p := range n {
		k.Partitions = append(k.Partitions, PartitionDef{ID: p, First: p * slots / n})
	}
	k.NextPartition = n
}

// ReplaceContainer changes the spec of the container of a generation; the partition key, id and unique keys stay as
// they are. inUse are the versions of the indexing policy that index entries follow now: those policies are kept as
// Former.
func (c *Catalog) ReplaceContainer(ctx context.Context, db, id string, gen uint32, spec Spec, inUse []uint32) (*Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, err
	}
	old := next.containers[db][id]
	if old == nil || old.Gen != gen {
		return nil, errNoContainer(id, 0)
	}
	if t := spec.Throughput; t.Manual < 0 || t.AutoscaleMax < 0 {
		return nil, status.New(status.BadRequest, "The throughput is out of range.")
	}
	k := *old
	k.Spec = spec.Clone()
	k.Spec.ID, k.Spec.PartitionKey, k.Spec.UniqueKeys, k.Spec.FoldID = old.ID, old.PartitionKey, old.UniqueKeys, old.FoldID
	k.TS, k.Version = c.clk.Now().Unix(), next.account.NextVersion
	next.account.NextVersion++
	if !bytes.Equal(k.IndexingPolicy, old.IndexingPolicy) {
		k.IndexVersion++
		k.Former = nil
		for _, f := range append(slices.Clone(old.Former), FormerPolicy{old.IndexVersion, old.IndexingPolicy}) {
			if slices.Contains(inUse, f.Version) {
				k.Former = append(k.Former, f)
			}
		}
	}
	next.addContainer(&k)
	return &k, c.put(ctx, next, containerKey(&k), &k)
}

// ForgetFormer drops the former indexing policies of a container whose index entries all follow this version of the
// policy. It does nothing when there is a newer one. The definition stays as it is otherwise, its version too.
func (c *Catalog) ForgetFormer(ctx context.Context, rid [8]byte, version uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return err
	}
	old := next.rids[rid]
	if old == nil || old.IndexVersion != version || len(old.Former) == 0 {
		return nil
	}
	k := *old
	k.Former = nil
	next.addContainer(&k)
	return c.put(ctx, next, containerKey(&k), &k)
}

// RenameContainer gives a container another id within its database. Its items stay where they are. With replace the
// container that has this id goes in the same commit and is returned as gone; the caller drops its range.
func (c *Catalog) RenameContainer(ctx context.Context, db, id, to string, replace bool) (k, gone *Container, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, nil, err
	}
	old := next.containers[db][id]
	if old == nil {
		return nil, nil, errNoContainer(id, 0)
	}
	var b kv.Batch
	if replace && to != id {
		if gone = next.containers[db][to]; gone != nil {
			delete(next.rids, gone.RID())
			deleteContainer(&b, gone)
		}
	}
	if c.taken(db, to, old.FoldID, old, gone) {
		return nil, nil, status.New(status.Conflict, "Resource with specified id or name already exists.")
	}
	renamed := *old
	k = &renamed
	k.ID = to
	k.TS, k.Version = c.clk.Now().Unix(), next.account.NextVersion
	next.account.NextVersion++
	delete(next.containers[db], id)
	next.addContainer(k)
	e, err := encode(k)
	if err != nil {
		return nil, nil, err
	}
	b.Delete(containerKey(old))
	b.Put(containerKey(k), e)
	return k, gone, c.commit(ctx, next, &b)
}

// DropContainer removes a container and its slot heads and returns it; the caller drops its range.
func (c *Catalog) DropContainer(ctx context.Context, db, id string) (*Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, err
	}
	m, ok := next.containers[db]
	if !ok {
		return nil, errNoDatabase(db, status.SubOwnerNotFound)
	}
	k := m[id]
	if k == nil {
		return nil, errNoContainer(id, 0)
	}
	delete(m, id)
	delete(next.rids, k.RID())
	b := kv.Batch{Frees: true}
	deleteContainer(&b, k)
	return k, c.commit(ctx, next, &b)
}

// deleteContainer removes the entry and every slot head in one commit, so that a late writer fails on its head.
func deleteContainer(b *kv.Batch, k *Container) {
	b.Delete(containerKey(k))
	b.Delete(keys.AppendMeta(nil, keys.MetaCounter, k.Gen, ""))
	for i := range k.Slots {
		b.Delete(keys.AppendPrefix(nil, k.SlotKey(i), keys.KindHead))
	}
}
