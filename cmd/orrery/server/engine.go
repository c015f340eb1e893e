package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/lease"
)

// A store is either in a directory, or in memory, or at an address of an engine that several processes share. The
// binary says which kinds of addresses it can open: its main gives them to the command line, and Config.Engines has
// them. Tests give kinds of their own.
//
// Example: with the kind {Scheme: "tikv", Open: ..} the server of Engine = "tikv://pd:2379/main" has its store there.

// EngineKind opens the stores whose addresses begin with a scheme.
type EngineKind struct {
	Scheme string // without "://"
	// Open opens the store at an address, which begins with the scheme. Its errors are for the operator: one sentence,
	// within ten seconds. After an error nothing was written.
	Open func(ctx context.Context, address string, o EngineOptions) (kv.Engine, error)
}

// EngineOptions are what a server tells an engine.
type EngineOptions struct {
	Logger *slog.Logger // not nil
	// ReadOnly says that the store must exist, and that nothing will be written to it.
	ReadOnly bool
	// Upgrade says that a store of an older format may be opened. The server gives it the present one.
	Upgrade bool
}

// schemeEnd separates the scheme of an address from the rest.
const schemeEnd = "://"

// kindOf returns the kind that opens an address. The error says which binary does.
func kindOf(address string, kinds []EngineKind) (EngineKind, error) {
	scheme, _, ok := strings.Cut(address, schemeEnd)
	if !ok || scheme == "" {
		return EngineKind{}, errors.New("--engine: want an address such as tikv://pd1:2379,pd2:2379/main")
	}
	known := make([]string, len(kinds))
	for i, k := range kinds {
		if k.Scheme == scheme {
			return k, nil
		}
		known[i] = k.Scheme + schemeEnd
	}
	if len(kinds) == 0 {
		return EngineKind{}, fmt.Errorf("--engine %s: this binary has stores in directories and in memory only; "+
			"orrery-tikv, which `make build-tikv` makes, opens tikv://", ShownAddress(address))
	}
	return EngineKind{}, fmt.Errorf("--engine %s: this binary opens %s only", ShownAddress(address),
		strings.Join(known, ", "))
}

// ShownAddress returns an address without what may be secret: user, password and parameters.
func ShownAddress(address string) string {
	scheme, rest, ok := strings.Cut(address, schemeEnd)
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	return scheme + schemeEnd + rest
}

// openAddress opens the store at an address.
func openAddress(ctx context.Context, address string, kinds []EngineKind, o EngineOptions) (kv.Engine, error) {
	k, err := kindOf(address, kinds)
	if err != nil {
		return nil, err
	}
	e, err := k.Open(ctx, address, o)
	if err != nil {
		return nil, addressError(address, err)
	}
	return e, nil
}

// upgradeAddress gives the store at an address the present format, after all its servers have ended. It waits until
// none of them can be alive, which takes ten seconds if one was killed shortly before.
func upgradeAddress(ctx context.Context, address string, e kv.Engine) error {
	u, ok := e.(kv.Upgradable)
	if !ok || u.Identity().Format >= kv.Format {
		return nil
	}
	alive, err := lease.AwaitRest(ctx, e, clock.New())
	if err == nil && alive {
		err = fmt.Errorf("it has format %d, and a server is using it: stop all servers of this store, and start one "+
			"of this version with --upgrade", u.Identity().Format)
	}
	if err == nil {
		err = u.Upgrade(ctx)
	}
	if err != nil {
		return addressError(address, err)
	}
	return nil
}

// addressError returns a sentence that says why the store at an address can't be opened.
func addressError(address string, err error) error {
	text := strings.TrimPrefix(err.Error(), kv.ErrUnavailable.Error()+": ")
	var r *kv.Refusal
	if errors.As(err, &r) {
		text = r.Sentence
	}
	return fmt.Errorf("the store at %s can't be opened: %s", ShownAddress(address),
		strings.ReplaceAll(text, "\n", " "))
}

// OpenAddressForReading opens the store at an address without serving it. Other processes may be using it. Nothing is
// written; it is an error if there is no store.
func OpenAddressForReading(ctx context.Context, address string, kinds []EngineKind, log *slog.Logger) (*core.Engine,
	error) {
	e, err := openAddress(ctx, address, kinds, EngineOptions{Logger: log, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	eng, err := openCore(ctx, e, log)
	if err != nil {
		return nil, errors.Join(addressError(address, err), e.Close())
	}
	return eng, nil
}

// place says where the store is, for people: the address, the directory, or "memory".
func (c *Config) place() string {
	switch {
	case c.Engine != "":
		return ShownAddress(c.Engine)
	case c.Memory:
		return "memory"
	}
	return c.Data
}

// directory returns the directory with the files of this server, "" if it has none. A server whose store is at an
// address has its certificate there, its connection strings and temporary files, and no data.
func (c *Config) directory() string {
	if c.Memory {
		return ""
	}
	return c.Data
}

// engineName is the name of the storage engine in /status.
func (c *Config) engineName() string {
	switch scheme, _, _ := strings.Cut(c.Engine, schemeEnd); {
	case scheme != "":
		return scheme
	case c.Memory:
		return "memory"
	}
	return "pebble"
}

// validateEngine checks the flags of a store at an address.
func (c *Config) validateEngine() error {
	if _, err := kindOf(c.Engine, c.Engines); err != nil {
		return err
	}
	switch {
	case c.Memory:
		return errors.New("--engine and --memory can't be used together")
	case c.Durability == "relaxed":
		return errors.New("--durability relaxed is for a store in a directory: a store that processes share has " +
			"every acknowledged write in any case")
	case c.MinFree != 0:
		return errors.New("--min-free is for a store in a directory")
	}
	if c.Data != "" && pebblekv.Holds(StoreDir(c.Data)) {
		return fmt.Errorf("%s holds a store of its own: with --engine give another --data, or none", c.Data)
	}
	return nil
}
