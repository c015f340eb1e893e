package server

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// The stores that test controls make: for a reset, a restore, an account, a fork. In a directory each one is opened
// before it is needed by anybody: so requests on the old store go on meanwhile.
//
// Opening an empty store takes two dozen syncs of the disk, and a copy of a snapshot a dozen, each of which waits for
// what others write. So stores are kept open in reserve: an empty one, and copies of the snapshots that were made or
// used last. When one is used, the next one is opened in the background. They hold no time, so each account can use
// them. Each takes about a megabyte of memory. A copy merges nothing before it is used.

// spare is a store in reserve.
type spare struct {
	name   string        // of the snapshot; "": it is empty
	copied chan struct{} // closed when the snapshot isn't read any more
	opened chan struct{} // closed when e or err is set
	e      *pebblekv.Engine
	err    error
}

// mostCopies is the largest number of snapshots of which there is a copy in reserve.
const mostCopies = 4

// makeStore makes and opens a store with the content of f; nil: empty. s is the server itself.
func (s *Server) makeStore(f filling) (kv.Engine, error) {
	switch {
	case s.cfg.Memory && f == nil:
		return memkv.New(), nil
	case s.cfg.Memory:
		return f.tree(), nil
	}
	kept, named := f.(fileStore)
	if f == nil || named {
		if e := s.takeSpare(kept.name); e != nil {
			e.Work()
			return e, nil
		}
	}
	return s.openStore(f, s.newStoreDir(), false, func() {})
}

// openStore makes a store with the content of f in a directory, and opens it. copied is called when f isn't read any
// more.
func (s *Server) openStore(f filling, dir string, reserve bool, copied func()) (*pebblekv.Engine, error) {
	var err error
	if f != nil {
		err = f.into(dir)
	}
	copied()
	if err != nil {
		return nil, err
	}
	e, err := openDirectory(&s.cfg, dir, reserve)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return e, nil
}

// newStoreDir returns the name of a directory that doesn't exist.
func (s *Server) newStoreDir() string {
	s.kit.making.Lock()
	defer s.kit.making.Unlock()
	s.kit.stores++
	return filepath.Join(s.cfg.Data, storesName, strconv.Itoa(s.kit.stores))
}

// prepareSpare begins to open a store in reserve, if there is none: a copy of a snapshot, or with "" an empty one. The
// kit is locked.
func (s *Server) prepareSpare(name string) {
	if s.cfg.Memory || s.stopping.Load() {
		return
	}
	dir := s.newStoreDir()
	s.kit.making.Lock()
	defer s.kit.making.Unlock()
	if s.kit.indexOfSpare(name) >= 0 {
		return
	}
	p := &spare{name: name, copied: make(chan struct{}), opened: make(chan struct{})}
	s.kit.spares = append(s.kit.spares, p)
	var f filling
	if name != "" {
		f = fileStore{s.snapshotDir(name), name}
		if copies := s.kit.copiesInReserve(); len(copies) > mostCopies {
			s.kit.removeSpare(copies[0].name)
			s.wg.Go(func() { s.closeSpare(copies[0]) })
		}
	}
	s.wg.Go(func() {
		defer close(p.opened)
		if p.e, p.err = s.openStore(f, dir, true, func() { close(p.copied) }); p.err != nil {
			s.log.Debug("No store could be made in reserve", "snapshot", name, "error", p.err)
		}
	})
}

// prepareFirstSpare does it when the server is ready.
func (s *Server) prepareFirstSpare() {
	if s.kit != nil {
		s.kit.mu.Lock()
		defer s.kit.mu.Unlock()
		s.prepareSpare("")
	}
}

// indexOfSpare returns the index of the store in reserve for a snapshot, -1 if there is none. making is locked, as for
// the next two.
func (k *kit) indexOfSpare(name string) int {
	return slices.IndexFunc(k.spares, func(p *spare) bool { return p.name == name })
}

// removeSpare removes a store from the reserve and returns it; nil: there is none.
func (k *kit) removeSpare(name string) *spare {
	i := k.indexOfSpare(name)
	if i < 0 {
		return nil
	}
	p := k.spares[i]
	k.spares = slices.Delete(k.spares, i, i+1)
	return p
}

// copiesInReserve returns the copies of snapshots, the one that was used last at the end.
func (k *kit) copiesInReserve() (copies []*spare) {
	for _, p := range k.spares {
		if p.name != "" {
			copies = append(copies, p)
		}
	}
	return copies
}

// takeSpare returns the store in reserve, which isn't in reserve then; nil: there is none.
func (s *Server) takeSpare(name string) *pebblekv.Engine {
	s.kit.making.Lock()
	p := s.kit.removeSpare(name)
	s.kit.making.Unlock()
	if p == nil {
		return nil
	}
	<-p.opened
	return p.e
}

// forgetSpare takes a copy of a snapshot out of the reserve, because the snapshot will change. It returns when the
// snapshot isn't read any more. The kit is locked.
func (s *Server) forgetSpare(name string) {
	s.kit.making.Lock()
	p := s.kit.removeSpare(name)
	s.kit.making.Unlock()
	if p == nil {
		return
	}
	<-p.copied
	s.wg.Go(func() { s.closeSpare(p) })
}

// closeSpare closes and removes a store that was in reserve.
func (s *Server) closeSpare(p *spare) {
	if <-p.opened; p.e == nil {
		return
	}
	p.e.Discard()
	if err := errors.Join(p.e.Close(), removeStore(p.e)); err != nil {
		s.log.Warn("A store in reserve was not removed", "error", err)
	}
}

// dropSpares removes the stores in reserve at the end of the server.
func (s *Server) dropSpares() {
	if s.kit == nil {
		return
	}
	s.kit.mu.Lock()
	defer s.kit.mu.Unlock()
	for _, p := range s.kit.spares {
		s.closeSpare(p)
	}
	s.kit.spares = nil
}

// removeStore removes a store that is closed.
func removeStore(e kv.Engine) error {
	if p, ok := e.(*pebblekv.Engine); ok {
		return os.RemoveAll(p.Directory())
	}
	return nil
}

// mendStores removes from a data directory what ended with the last server: stores that were replaced, or were not yet
// in use, those of other accounts, and the remains of snapshots. It also completes the replacement of a snapshot. It
// returns the number of the store, 0 if it was never replaced. The store is open, so no other server uses the
// directory.
func mendStores(data string) (int, error) {
	name, err := readStoreName(data)
	if err != nil {
		return 0, err
	}
	number := 0
	if name != "" {
		if number, err = strconv.Atoi(name); err != nil {
			return 0, err
		}
		err = os.RemoveAll(filepath.Join(data, storeName)) // as it was before the first replacement
	}
	err = errors.Join(err, os.RemoveAll(filepath.Join(data, accountsName)))
	stores, snapshots := filepath.Join(data, storesName), filepath.Join(data, snapshotsName)
	for _, dir := range names(stores) {
		if dir != name {
			err = errors.Join(err, os.RemoveAll(filepath.Join(stores, dir)))
		}
	}
	for _, dir := range names(snapshots) {
		path := filepath.Join(snapshots, dir)
		whole, old := strings.CutSuffix(path, oldEnd)
		if _, serr := os.Stat(whole); old && errors.Is(serr, os.ErrNotExist) {
			err = errors.Join(err, os.Rename(path, whole))
		} else if old || strings.HasSuffix(path, newEnd) {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return number, err
}

// names returns the names in a directory, none if it can't be read.
func names(dir string) (out []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
