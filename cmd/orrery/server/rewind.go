package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// Reset, snapshot, restore and fork. A store in memory is a tree that can be copied in constant time. A store in a
// directory is copied as hard links to its tables and a copy of its log. So none of them depends on the number of
// items.

// filling is the content of a new store.
type filling interface {
	// into makes the store in a directory that doesn't exist yet.
	into(dir string) error
	// tree returns the store in memory.
	tree() *memkv.Engine
}

// liveStore fills with the present content of an engine, oldStore with that of a snapshot.
type (
	liveStore struct{ kv kv.Engine }
	treeStore struct{ kv *memkv.Engine }
	fileStore struct{ dir, name string }
)

func (l liveStore) into(dir string) error {
	if p, ok := l.kv.(*pebblekv.Engine); ok {
		p.Flush(longestFlush)
	}
	return l.kv.Checkpoint(context.Background(), dir)
}
func (l liveStore) tree() *memkv.Engine   { return l.kv.(*memkv.Engine).Fork() }
func (t treeStore) into(string) error     { return errors.ErrUnsupported }
func (t treeStore) tree() *memkv.Engine   { return t.kv.Fork() }
func (f fileStore) into(dir string) error { return pebblekv.Link(f.dir, dir) }
func (f fileStore) tree() *memkv.Engine   { return nil }

// A store whose log is long takes long to open: the log is read, and becomes a table. So a copy is made after a flush.
// With test controls memtables are small, so that a flush takes some tens of milliseconds at most. And all stores share
// a cache of blocks, so that an account and a store in reserve take a megabyte.
const (
	testMemTableMB = 8
	longestFlush   = time.Second
)

// Reset removes everything from an account, or with "" from all of them. Clients stay connected. Requests that run get
// drainTime to end.
func (s *Server) Reset(account string) error {
	k, err := s.controls()
	if err != nil {
		return err
	}
	defer k.mu.Unlock()
	all := s.accountsBelow()
	if account != "" {
		a, err := s.accountNamed(account)
		if err != nil {
			return err
		}
		all = []*Server{a}
	}
	defer s.prepareSpare("")
	var wg sync.WaitGroup
	errs, turns := make([]error, len(all)), make(chan struct{}, resetsAtOnce)
	for i, a := range all {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			errs[i] = a.refill(nil)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// resetsAtOnce is the number of accounts that are reset at a time: each waits for the disk.
const resetsAtOnce = 8

// Snapshot keeps the present content of an account under a name, in place of an older one of this name. "" is the
// server's own account.
func (s *Server) Snapshot(account, name string) error {
	k, err := s.controls()
	if err != nil {
		return err
	}
	defer k.mu.Unlock()
	if !testName.MatchString(name) {
		return fmt.Errorf("snapshot %q: %w", name, errName)
	}
	a, err := s.accountNamed(account)
	if err != nil {
		return err
	}
	live := liveStore{a.stage.gen.Load().kv}
	if s.cfg.Memory {
		k.snapshots[name] = live.tree()
		return nil
	}
	dir := s.snapshotDir(name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir+newEnd), os.RemoveAll(dir+oldEnd)); err != nil {
		return err
	}
	if err := live.into(dir + newEnd); err != nil {
		return err
	}
	if a == s {
		if err := s.keepScripts(dir + newEnd); err != nil {
			return err
		}
	}
	s.forgetSpare(name)
	if err := os.Rename(dir, dir+oldEnd); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(dir+newEnd, dir); err != nil { // mendStores completes it after a crash
		return err
	}
	s.prepareSpare(name)
	return os.RemoveAll(dir + oldEnd)
}

// Names of directories: of the snapshots in a data directory, of a copy that isn't complete, and of one that is being
// replaced.
const (
	snapshotsName = "snapshots"
	newEnd        = ".new"
	oldEnd        = ".old"
)

func (s *Server) snapshotDir(name string) string {
	return filepath.Join(s.cfg.Data, snapshotsName, name)
}

// Snapshots returns the names of the snapshots.
func (s *Server) Snapshots() ([]string, error) {
	k, err := s.controls()
	if err != nil {
		return nil, err
	}
	defer k.mu.Unlock()
	if s.cfg.Memory {
		return slices.Sorted(maps.Keys(k.snapshots)), nil
	}
	entries, err := os.ReadDir(filepath.Join(s.cfg.Data, snapshotsName))
	names := []string{}
	for _, e := range entries {
		if testName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return names, err
}

// RemoveSnapshot removes a snapshot.
func (s *Server) RemoveSnapshot(name string) error {
	k, err := s.controls()
	if err != nil {
		return err
	}
	defer k.mu.Unlock()
	if _, err := s.snapshotNamed(name); err != nil {
		return err
	}
	delete(k.snapshots, name)
	if s.cfg.Memory {
		return nil
	}
	s.forgetSpare(name)
	dir := s.snapshotDir(name)
	if err := os.RemoveAll(dir + newEnd); err != nil {
		return err
	}
	if err := os.Rename(dir, dir+newEnd); err != nil { // at no moment a part of it has its name
		return err
	}
	return os.RemoveAll(dir + newEnd)
}

// snapshotNamed returns a snapshot.
func (s *Server) snapshotNamed(name string) (filling, error) {
	if !testName.MatchString(name) {
		return nil, fmt.Errorf("snapshot %q: %w", name, errName)
	}
	if s.cfg.Memory {
		if t := s.kit.snapshots[name]; t != nil {
			return treeStore{t}, nil
		}
	} else if _, err := os.Stat(s.snapshotDir(name)); err == nil {
		return fileStore{s.snapshotDir(name), name}, nil
	}
	return nil, fmt.Errorf("snapshot %q: %w", name, errUnknown)
}

// Restore gives an account the content of a snapshot. "" is the server's own account. Clients stay connected.
func (s *Server) Restore(account, name string) error {
	k, err := s.controls()
	if err != nil {
		return err
	}
	defer k.mu.Unlock()
	f, err := s.snapshotNamed(name)
	if err != nil {
		return err
	}
	a, err := s.accountNamed(account)
	if err != nil {
		return err
	}
	defer s.prepareSpare(name)
	return a.refill(f)
}

// Fork adds an account with the content of a snapshot, or of another account. One of both is "", or both for the
// content of the server's own account.
func (s *Server) Fork(snapshot, account, name string) (*Server, error) {
	k, err := s.controls()
	if err != nil {
		return nil, err
	}
	defer k.mu.Unlock()
	var f filling
	switch {
	case snapshot != "" && account != "":
		return nil, errFork
	case snapshot != "":
		if f, err = s.snapshotNamed(snapshot); err == nil {
			defer s.prepareSpare(snapshot)
		}
	default:
		var a *Server
		if a, err = s.accountNamed(account); err == nil {
			f = liveStore{a.stage.gen.Load().kv}
		}
	}
	if err != nil {
		return nil, err
	}
	return s.addAccount(name, f)
}

// refill gives the account another store, with the content of f; nil: empty. Requests go on with the old store until
// the new one is open. After an error the account has the old one.
func (s *Server) refill(f filling) error {
	e, err := s.root().makeStore(f)
	if err != nil {
		return err
	}
	b, err := openOver(&s.cfg, e)
	if err != nil {
		return errors.Join(err, removeStore(e))
	}
	g, err := s.newGeneration(b)
	if err != nil {
		return errors.Join(err, g.discard())
	}
	old, err := s.stage.replace(g, func() error { return s.keepName(e) })
	if err != nil {
		return errors.Join(err, g.discard())
	}
	s.stage.forget(s, old)
	return nil
}

// keepName makes a store in a directory the one that the next start finds. Those of other accounts end with the server.
func (s *Server) keepName(e kv.Engine) error {
	if p, ok := e.(*pebblekv.Engine); ok && s.kit != nil {
		return nameStore(s.cfg.Data, p.Directory())
	}
	return nil
}
