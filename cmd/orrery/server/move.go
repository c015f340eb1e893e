package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/move"
)

// Moved describes a store that was moved. From and To are data directories or addresses.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
	move.Result
}

// Move moves the store at one place to another one, which has none yet. A place is a data directory, or an address that
// one of the kinds opens. Nobody may serve the stores. A move that was interrupted is continued by the same call.
func Move(ctx context.Context, from, to string, kinds []EngineKind, log *slog.Logger, w move.Watch) (m Moved,
	err error) {
	m = Moved{From: placeName(from), To: placeName(to)}
	if m.From == m.To {
		return m, errors.New("--from and --to are the same place")
	}
	a, err := openSource(ctx, from, kinds, log)
	if err != nil {
		return m, err
	}
	b, err := openTarget(ctx, to, kinds, log)
	if err != nil {
		return m, errors.Join(err, a.Close())
	}
	m.Result, err = move.Run(ctx, a, b, move.Options{From: m.From, To: m.To, Watch: w})
	return m, errors.Join(err, b.Close(), a.Close())
}

// AbandonMove makes a store that is leaving, or has left, a store again that can be served.
func AbandonMove(ctx context.Context, from string, kinds []EngineKind, log *slog.Logger) error {
	e, err := openSource(ctx, from, kinds, log)
	if err != nil {
		return err
	}
	return errors.Join(move.Abandon(ctx, e), e.Close())
}

// isAddress reports whether a place is an address, and no directory.
func isAddress(place string) bool { return strings.Contains(place, schemeEnd) }

// placeName is the name of a place in sentences and in the records of a move. It is the same wherever a command is run.
func placeName(place string) string {
	if isAddress(place) {
		return ShownAddress(place)
	}
	if abs, err := filepath.Abs(place); err == nil {
		return abs
	}
	return place
}

// openSource opens the store at a place, which must exist.
func openSource(ctx context.Context, place string, kinds []EngineKind, log *slog.Logger) (kv.Engine, error) {
	if isAddress(place) {
		e, err := openAddress(ctx, place, kinds, EngineOptions{Logger: log, ReadOnly: true}) // makes none
		if err == nil {
			err = e.Close()
		}
		if err != nil {
			return nil, err
		}
		return openAddress(ctx, place, kinds, EngineOptions{Logger: log})
	}
	dir, err := storeIn(place)
	if err != nil {
		return nil, err
	}
	if isBackup(place) {
		return nil, fmt.Errorf("%s is a backup, which must not be changed: orrery restore --from %s --data NEWDIR "+
			"makes a store of it", place, place)
	}
	if !pebblekv.Holds(dir) {
		return nil, fmt.Errorf("%s holds no store", place)
	}
	return openToMove(place, log)
}

// openTarget opens the place to which a store is moved.
func openTarget(ctx context.Context, place string, kinds []EngineKind, log *slog.Logger) (kv.Engine, error) {
	if isAddress(place) {
		return openAddress(ctx, place, kinds, EngineOptions{Logger: log})
	}
	dir, err := storeIn(place)
	if err != nil {
		return nil, err
	}
	if err := emptyBut(place, filepath.Base(dir), filepath.Base(spillDir(place)), tlsName); err != nil {
		return nil, err
	}
	return openToMove(place, log)
}

// openToMove opens the store of a data directory for writing. A new one is made.
func openToMove(data string, log *slog.Logger) (kv.Engine, error) {
	o := readOnly()
	o.ReadOnly, o.Logger = false, log
	e, err := pebblekv.Open(StoreDir(data), o)
	if err != nil {
		return nil, openError(data, err)
	}
	return e, nil
}

// openCore opens the core on an engine for reading. An incomplete copy of another store is refused.
func openCore(ctx context.Context, e kv.Engine, log *slog.Logger) (*core.Engine, error) {
	m, _, err := catalog.ReadMove(ctx, e)
	if err == nil && m != nil && m.State == catalog.MoveArriving {
		err = m.Refusal()
	}
	if err != nil {
		return nil, err
	}
	return core.Open(ctx, e, core.Options{ReadOnly: true, Logger: log})
}
