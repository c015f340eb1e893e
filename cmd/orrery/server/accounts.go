package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// Accounts of a server with test controls. Besides its own account it can have any number of others, for tests that run
// side by side. An account is a store of its own behind ports of its own, with a key and a data clock of its own, in
// the same process: the ports name it, because a NoSQL request has no account name, and names below localhost don't
// resolve on every system. The key refuses a client that has dialled another account's port. The certificate, the admin
// port and the memory for requests are the server's.
//
// Example: the test A has the account a at the ports 40001 to 40004, and B has b at 40005 to 40008. Both make the
// database shop. A reset of a removes only a's.

// kit is what a server with test controls has in addition.
type kit struct {
	mu        sync.Mutex               // one change of accounts, snapshots and stores at a time
	accounts  map[string]*Server       // besides the server's own
	snapshots map[string]*memkv.Engine // of stores in memory; nobody writes to them
	faults    faults
	recorder  recording

	making sync.Mutex // of what follows
	spares []*spare   // the one that was used last is the last
	stores int        // the number of the last store that was made in storesName
}

// testName is the form of the names of accounts and snapshots. A name is never a path.
var testName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// The errors of test controls, for their caller.
var (
	errNoControls = errors.New("this server has no test controls: start it with --test-controls")
	errName       = errors.New("want a name of 1 to 64 characters a-z, 0-9 and -")
	errTaken      = errors.New("there is one with this name already")
	errUnknown    = errors.New("there is none with this name")
	errFork       = errors.New("a fork is of a snapshot or of an account, not of both")
	errOwn        = errors.New("the server's own account ends with the server")
)

// controls returns the server's kit, locked. The caller unlocks it.
func (s *Server) controls() (*kit, error) {
	if s.kit == nil {
		return nil, errNoControls
	}
	s.kit.mu.Lock()
	return s.kit, nil
}

// AddAccount adds an account to a server with test controls. It serves when AddAccount returns, until RemoveAccount or
// until the server stops.
func (s *Server) AddAccount(name string) (*Server, error) {
	k, err := s.controls()
	if err != nil {
		return nil, err
	}
	defer k.mu.Unlock()
	defer s.prepareSpare("")
	return s.addAccount(name, nil)
}

// addAccount adds an account whose store is made by fill; nil: it is empty.
func (s *Server) addAccount(name string, fill filling) (*Server, error) {
	switch {
	case !testName.MatchString(name):
		return nil, fmt.Errorf("account %q: %w", name, errName)
	case name == s.cfg.Account || s.kit.accounts[name] != nil:
		return nil, fmt.Errorf("account %q: %w", name, errTaken)
	}
	c := s.accountConfig(name)
	if dir := c.directory(); dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	e, err := s.makeStore(fill)
	if err != nil {
		return nil, err
	}
	c.content = e
	a, err := start(c, s.parts)
	if err != nil {
		if cerr := e.Close(); !errors.Is(cerr, kv.ErrClosed) {
			err = errors.Join(err, cerr)
		}
		return nil, errors.Join(err, removeStore(e), c.forgetData())
	}
	s.kit.accounts[name] = a
	return a, nil
}

// accountConfig is the configuration of another account.
func (s *Server) accountConfig(name string) Config {
	c := s.cfg
	c.Account, c.Key = name, newKey(wall)
	c.Clock, c.parent, c.budget, c.spill = clock.New(), s, s.cfg.budget, nil
	for _, a := range []*string{&c.NoSQLAddr, &c.GremlinAddr, &c.TableAddr, &c.MongoAddr} {
		if host, _, err := net.SplitHostPort(*a); err == nil {
			*a = net.JoinHostPort(host, "0")
		}
	}
	c.AdminAddr, c.PageAddr, c.InitDir = Off, Off, ""
	c.MongoUser, c.MongoPassword, c.ConnectFile, c.RecordDir = "", "", "", ""
	if s.cfg.directory() != "" {
		c.Data = filepath.Join(s.cfg.Data, accountsName, name)
	}
	return c
}

// accountsName is the directory of the other accounts in a data directory. They live as long as the server.
const accountsName = "accounts"

// newKey makes a key of the length of the service's.
func newKey(clk *clock.Clock) string {
	var b [64]byte
	clk.Random(b[:])
	return base64.StdEncoding.EncodeToString(b[:])
}

// RemoveAccount removes an account with its data.
func (s *Server) RemoveAccount(ctx context.Context, name string) error {
	k, err := s.controls()
	if err != nil {
		return err
	}
	a := k.accounts[name]
	delete(k.accounts, name)
	k.mu.Unlock()
	switch {
	case name == s.cfg.Account:
		return fmt.Errorf("account %q: %w", name, errOwn)
	case a == nil:
		return fmt.Errorf("account %q: %w", name, errUnknown)
	}
	s.kit.faults.remove(func(f *Fault) bool { return f.Account == name })
	return a.end(ctx)
}

// end stops another account than the server's own, and removes its data.
func (s *Server) end(ctx context.Context) error {
	e := s.backing().kv
	if p, ok := e.(*pebblekv.Engine); ok {
		p.Discard()
	}
	return errors.Join(s.Stop(ctx), removeStore(e), s.cfg.forgetData())
}

// forgetData removes the directory of an account that has ended.
func (c *Config) forgetData() error {
	if c.directory() == "" {
		return nil
	}
	return os.RemoveAll(c.directory())
}

// accountNamed returns an account; "" is the server's own. The kit is locked.
func (s *Server) accountNamed(name string) (*Server, error) {
	if name == "" || name == s.cfg.Account {
		return s, nil
	}
	if a := s.kit.accounts[name]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("account %q: %w", name, errUnknown)
}

// accountsBelow returns all accounts, the server's own first. The kit is locked.
func (s *Server) accountsBelow() []*Server {
	all := []*Server{s}
	for _, name := range slices.Sorted(maps.Keys(s.kit.accounts)) {
		all = append(all, s.kit.accounts[name])
	}
	return all
}

// endAccounts stops all other accounts.
func (s *Server) endAccounts(ctx context.Context) (err error) {
	if s.kit == nil {
		return nil
	}
	s.kit.mu.Lock()
	defer s.kit.mu.Unlock()
	for name, a := range s.kit.accounts {
		err = errors.Join(err, a.end(ctx))
		delete(s.kit.accounts, name)
	}
	return err
}
