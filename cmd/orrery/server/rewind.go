package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

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
	fileStore struct{ dir string }
)

func (l liveStore) into(dir string) error { return l.kv.Checkpoint(context.Background(), dir) }
func (l liveStore) tree() *memkv.Engine   { return l.kv.(*memkv.Engine).Fork() }
func (t treeStore) into(string) error     { return errors.ErrUnsupported }
func (t treeStore) tree() *memkv.Engine   { return t.kv.Fork() }
func (f fileStore) into(dir string) error { return pebblekv.Link(f.dir, dir) }
func (f fileStore) tree() *memkv.Engine   { return nil }

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
	for _, a := range all {
		err = errors.Join(err, a.refill(nil))
	}
	return err
}

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
	if err := os.RemoveAll(dir + newEnd); err != nil {
		return err
	}
	if err := live.into(dir + newEnd); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), os.Rename(dir+newEnd, dir))
}

// Names of directories: of the snapshots in a data directory, of a copy that isn't complete yet, and of a store that is
// being replaced.
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
	return os.RemoveAll(s.snapshotDir(name))
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
		return fileStore{s.snapshotDir(name)}, nil
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
	if snapshot != "" {
		f, err = s.snapshotNamed(snapshot)
	} else {
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

// refill gives the account another store, with the content of f; nil: empty.
func (s *Server) refill(f filling) error {
	if s.cfg.Memory {
		return s.refillMemory(f)
	}
	return s.refillDirectory(f)
}

func (s *Server) refillMemory(f filling) error {
	content := memkv.New()
	if f != nil {
		content = f.tree()
	}
	b, err := openOver(&s.cfg, content)
	if err != nil {
		return err
	}
	g, err := s.newGeneration(b)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	var old *generation
	if err := s.stage.replace(func(was *generation) (*generation, error) { old = was; return g, nil }); err != nil {
		return err
	}
	s.wg.Go(func() { // no request uses it any more
		if err := old.Close(); err != nil {
			s.log.Warn("A replaced store did not close", "error", err)
		}
	})
	return nil
}

// refillDirectory replaces the directory of the store. A crash leaves the old store or the new one (mendRefill).
func (s *Server) refillDirectory(f filling) error {
	dir := StoreDir(s.cfg.Data)
	s.stage.clearing.Wait()
	if err := errors.Join(os.RemoveAll(dir+newEnd), os.RemoveAll(dir+oldEnd)); err != nil {
		return err
	}
	if f != nil {
		if err := f.into(dir + newEnd); err != nil {
			return err
		}
	}
	err := s.stage.replace(func(old *generation) (*generation, error) {
		if d, ok := old.kv.(interface{ Discard() }); ok {
			d.Discard()
		}
		if err := old.Close(); err != nil {
			return nil, err
		}
		err := os.Rename(dir, dir+oldEnd)
		if err == nil && f != nil {
			err = os.Rename(dir+newEnd, dir)
		}
		if err != nil {
			return nil, err
		}
		b, err := openBackend(&s.cfg)
		if err != nil {
			return nil, err
		}
		return s.newGeneration(b.(*backing))
	})
	if err != nil { // the account has no store: clients can't be told anything true
		s.failed <- fmt.Errorf("the store of account %s was not replaced: %w", s.cfg.Account, err)
		return err
	}
	s.stage.clearing.Add(1)
	s.wg.Go(func() { // a gigabyte takes a tenth of a second
		defer s.stage.clearing.Done()
		if err := os.RemoveAll(dir + oldEnd); err != nil {
			s.log.Warn("A replaced store was not removed", "error", err)
		}
	})
	return nil
}

// mendRefill completes or takes back the replacement of a store that a crash has interrupted.
func mendRefill(data string) error {
	dir := StoreDir(data)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(dir+oldEnd, dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.RemoveAll(dir+newEnd), os.RemoveAll(dir+oldEnd),
		os.RemoveAll(filepath.Join(data, accountsName)))
}
