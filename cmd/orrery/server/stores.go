package server

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// The stores that test controls make: for a reset, a restore, an account, a fork. In a directory each one is opened
// before it is needed by anybody: so requests on the old store go on meanwhile.
//
// Opening an empty store takes two dozen syncs of the disk. So one is kept open in reserve, and the next one is opened
// when that one is used, in the background. It holds no data and no time, so each account can use it. It takes about a
// megabyte of memory.

// spare is an empty store in reserve.
type spare struct {
	opened chan struct{} // closed when e or err is set
	e      *pebblekv.Engine
	err    error
}

// makeStore makes and opens a store with the content of f; nil: empty. s is the server itself.
func (s *Server) makeStore(f filling) (kv.Engine, error) {
	switch {
	case s.cfg.Memory && f == nil:
		return memkv.New(), nil
	case s.cfg.Memory:
		return f.tree(), nil
	case f == nil:
		if e := s.takeSpare(); e != nil {
			return e, nil
		}
	}
	dir := s.newStoreDir()
	if f != nil {
		if err := f.into(dir); err != nil {
			return nil, err
		}
	}
	e, err := openDirectory(&s.cfg, dir)
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

// prepareSpare begins to open a store in reserve, if there is none. The kit is locked.
func (s *Server) prepareSpare() {
	if s.cfg.Memory || s.stopping.Load() {
		return
	}
	dir := s.newStoreDir()
	s.kit.making.Lock()
	defer s.kit.making.Unlock()
	if s.kit.spare != nil {
		return
	}
	p := &spare{opened: make(chan struct{})}
	s.kit.spare = p
	s.wg.Go(func() {
		defer close(p.opened)
		if p.e, p.err = openDirectory(&s.cfg, dir); p.err != nil {
			s.log.Debug("No store could be made in reserve", "error", p.err)
			_ = os.RemoveAll(dir)
		}
	})
}

// prepareFirstSpare does it when the server is ready.
func (s *Server) prepareFirstSpare() {
	if s.kit != nil {
		s.kit.mu.Lock()
		defer s.kit.mu.Unlock()
		s.prepareSpare()
	}
}

// takeSpare returns the store in reserve, which isn't in reserve then; nil: there is none.
func (s *Server) takeSpare() *pebblekv.Engine {
	s.kit.making.Lock()
	p := s.kit.spare
	s.kit.spare = nil
	s.kit.making.Unlock()
	if p == nil {
		return nil
	}
	<-p.opened
	return p.e
}

// dropSpare removes the store in reserve at the end of the server.
func (s *Server) dropSpare() error {
	if s.kit == nil {
		return nil
	}
	s.kit.mu.Lock()
	defer s.kit.mu.Unlock()
	e := s.takeSpare()
	if e == nil {
		return nil
	}
	e.Discard()
	return errors.Join(e.Close(), removeStore(e))
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
