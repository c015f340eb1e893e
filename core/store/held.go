package store

import (
	"context"
	"errors"
	"maps"
	"time"
	"weak"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// held holds the run-time state of a container generation that is or was in use. There is never more than one state: a
// container that was not requested for some time is held by a weak pointer. While a handle or background work still has
// it, the next request gets the same one.
type held struct {
	strong *Container // nil: idle
	weak   weak.Pointer[Container]
}

// get returns the state, or nil when it was freed.
func (h *held) get() *Container {
	if h == nil {
		return nil
	}
	if h.strong != nil {
		return h.strong
	}
	return h.weak.Value()
}

// Container returns the run-time state of a catalog entry. If it isn't open, it waits for that until ctx ends.
func (s *Store) Container(ctx context.Context, def *catalog.Container) (*Container, error) {
	s.mu.RLock()
	var c *Container
	if h := s.open[def.Gen]; h != nil {
		c = h.strong
	}
	s.mu.RUnlock()
	if c == nil {
		var err error
		if c, err = s.opened(ctx, def); err != nil {
			return nil, err
		}
	}
	if turn := s.turn.Load(); c.used.Load() != turn {
		c.used.Store(turn)
	}
	if c.def.Load().Version < def.Version {
		if err := c.update(ctx, def); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// opening is a load of a container that is under way. Whoever needs the container waits for the same load, and each may
// leave when its own time is over. So the load belongs to no request: it ends with the store, or after openMost.
type opening struct {
	database uint32        // its number
	done     chan struct{} // closed when the load has ended; then the following may be read
	c        *Container
	err      error // for those that wait now: the next one loads again
}

// openMost is the longest time of a load. The calls of an engine end far earlier; a load makes many of them where a
// container has many slots.
const openMost = time.Minute

// opened returns a container that is loaded. Loads of several containers run side by side.
func (s *Store) opened(ctx context.Context, def *catalog.Container) (*Container, error) {
	c, o, err := s.openOrLoad(def)
	if o == nil {
		return c, err
	}
	select {
	case <-o.done:
		return o.c, o.err
	case <-ctx.Done():
		return nil, translate(ctx.Err())
	}
}

// openOrLoad returns a container if it is open, or else its load, which it begins if there is none.
func (s *Store) openOrLoad(def *catalog.Container) (*Container, *opening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.open[def.Gen]
	if c := h.get(); c != nil {
		h.strong = c
		return c, nil, nil
	}
	if s.gone[def.DBNum] {
		return nil, nil, errDropped()
	}
	o := s.opening[def.Gen]
	if o == nil {
		o = &opening{database: def.DBNum, done: make(chan struct{})}
		if !s.work.Go("load of container "+def.ID, func() { s.opens(o, def) }) {
			return nil, nil, translate(kv.ErrClosed)
		}
		s.opening[def.Gen] = o
	}
	return nil, o, nil
}

// opens loads a container for all that wait for it, and resumes an index rebuild that the end of the previous process
// has interrupted.
func (s *Store) opens(o *opening, def *catalog.Container) {
	defer close(o.done)
	ctx, cancel := context.WithTimeout(s.work.Context(), openMost)
	defer cancel()
	var c *Container
	err := s.work.Try("load of container "+def.ID, func() (err error) {
		if c, err = s.loadNewest(ctx, def); err != nil {
			return err
		}
		if !s.others { // nobody else has the container
			c.endMoves()
		}
		c.defMu.Lock()
		defer c.defMu.Unlock()
		c.startRebuild() // before others see c: to them, a rebuild that is needed and not running has ended
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	forgotten := s.opening[def.Gen] != o // it was dropped meanwhile
	switch {
	case err == nil && forgotten:
		c.dropped.Store(true)
		err = errDropped()
	case err == nil:
		s.open[def.Gen] = &held{strong: c, weak: weak.Make(c)}
		o.c = c
		if s.onOpen != nil {
			s.onOpen(c)
		}
	}
	if o.err = err; !forgotten {
		delete(s.opening, def.Gen)
	}
}

// OnOpen sets a function that is called for each container that is opened. It must not block, or use the store. It is
// set before containers are used.
func (s *Store) OnOpen(f func(*Container)) { s.onOpen = f }

// newest returns the newest version of a container's definition. A caller's one may name slots that others have
// replaced since.
func (s *Store) newest(ctx context.Context, def *catalog.Container) *catalog.Container {
	now, err := s.cat.ContainerByRID(ctx, def.RID())
	if err != nil || now.Gen != def.Gen || now.Version < def.Version {
		return def
	}
	return now
}

// CloseIdle stops holding the containers that were not requested since the last call but one. Their memory is freed
// once no handle has them.
func (s *Store) CloseIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turn.Add(1)
	for gen, h := range s.open {
		switch c := h.get(); {
		case c == nil:
			delete(s.open, gen)
		case turn-c.used.Load() > 1:
			h.strong = nil
		}
	}
}

// Open returns how many containers are open, including idle ones that a handle still has.
func (s *Store) Open() (n int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, h := range s.open {
		if h.get() != nil {
			n++
		}
	}
	return n
}

// Forget drops the run-time state of a generation. Later writers fail because the heads are missing.
func (s *Store) Forget(gen uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.open[gen].get(); c != nil {
		c.dropped.Store(true)
	}
	delete(s.open, gen)
	delete(s.opening, gen)
}

// ForgetDatabase drops the run-time state of a dropped database's containers. None of them can be opened before
// Cleared.
func (s *Store) ForgetDatabase(num uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[num] = true
	maps.DeleteFunc(s.opening, func(_ uint32, o *opening) bool { return o.database == num })
	for gen, h := range s.open {
		if c := h.get(); c == nil {
			delete(s.open, gen)
		} else if c.def.Load().DBNum == num {
			c.dropped.Store(true)
			delete(s.open, gen)
		}
	}
}

// Cleared says that no slot of a dropped database has a head any more.
func (s *Store) Cleared(num uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gone, num)
}

// Stats is the information in the head of a slot, or in the heads of several.
type Stats struct{ LSN, Items, Bytes int64 }

// Stats returns the contents of a container's physical partitions, the version of the slot map that they belong to, and
// the container's run-time state if it is open. It opens nothing: if the container isn't open, its heads are read.
func (s *Store) Stats(ctx context.Context, def *catalog.Container) ([]Stats, *catalog.SlotMap, *Container, error) {
	s.mu.RLock()
	c := s.open[def.Gen].get()
	s.mu.RUnlock()
	if c != nil {
		if err := c.Refresh(ctx); err != nil {
			return nil, nil, nil, err
		}
		slots := c.Slots()
		out := make([]Stats, len(slots.m.Partitions))
		for i := range out {
			out[i] = StatsOf(slots.In(i))
		}
		return out, slots.m, c, nil
	}
	out := make([]Stats, len(def.Partitions))
	for slot, partition := range def.SlotKeys() {
		b, err := s.eng.Get(ctx, nil, keys.AppendPrefix(nil, slot, keys.KindHead))
		if errors.Is(err, kv.ErrNotFound) {
			if now := s.newest(ctx, def); now.MapVersion != def.MapVersion {
				return s.Stats(ctx, now)
			}
			return nil, nil, nil, errDropped()
		}
		if err != nil {
			return nil, nil, nil, translate(err)
		}
		var h Head
		if err := h.decode(b); err != nil {
			return nil, nil, nil, err
		}
		out[partition].add(Stats{h.LSN, h.Items, h.Bytes})
	}
	return out, def.SlotMap, nil, nil
}

// Visit returns the run-time state of a container for background work, and a function to call at the end of that work.
// A container that wasn't open is closed again, unless it was requested meanwhile.
func (s *Store) Visit(ctx context.Context, def *catalog.Container) (c *Container, done func(), err error) {
	if c, err = s.opened(ctx, def); err != nil {
		return nil, nil, err
	}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h := s.open[c.gen]; h != nil && c.used.Load() == 0 {
			h.strong = nil
		}
	}, nil
}

// Opened returns the containers that are open and in use.
func (s *Store) Opened() (out []*Container) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, h := range s.open {
		if h.strong != nil {
			out = append(out, h.strong)
		}
	}
	return out
}
