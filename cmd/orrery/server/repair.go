package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// salvage is everything readable of a store, in the form that the core needs.
type salvage struct{ *pebblekv.Salvage }

// Gaps implements core.Saved.
func (s salvage) Gaps() (out []core.Gap) {
	for _, l := range s.Lost() {
		out = append(out, core.Gap{Lo: l.Lo, Hi: l.Hi, What: l.Problem.String()})
	}
	return out
}

// Repair saves everything readable of the store in a data directory into a new store, and calls lost for each loss. It
// doesn't change the old store. For a damaged backup it also does what a restore does. An interrupted repair can be
// started again; until it is complete, no command opens the new directory as a store.
func Repair(ctx context.Context, data, to string, progress func(done, total int64), lost func(core.Lost)) (
	done core.Restored, err error) {
	if err := emptyBut(to, filepath.Base(StoreDir(to)), tlsName); err != nil {
		return done, err
	}
	if pebblekv.Within(data, to) {
		return done, fmt.Errorf("%s is in %s, in which nothing is changed: give another --to", to, data)
	}
	if home := backupsOf(data); pebblekv.Within(home, to) {
		return done, fmt.Errorf("%s is in %s, which is for backups alone: give another --to", to, home)
	}
	dir, err := storeIn(data)
	if err != nil {
		return done, err
	}
	s, err := pebblekv.OpenSalvage(ctx, dir, readOnly(), pebblekv.Watch{Progress: progress})
	if err != nil {
		return done, openError(data, err)
	}
	defer s.Close()
	o := readOnly()
	o.ReadOnly, o.Relaxed, o.Restoring = false, true, true
	at, err := pebblekv.Begin(StoreDir(to), o)
	if err != nil {
		return done, err
	}
	e, err := pebblekv.Open(StoreDir(to), o)
	if err != nil {
		return done, errors.Join(openError(to, err), at.Leave())
	}
	done, err = core.Restore(ctx, e, salvage{s}, lost)
	if err == nil && isBackup(data) {
		err = core.Raise(ctx, e)
	}
	if errors.Is(err, kv.ErrFull) {
		err = fmt.Errorf("the disk of %s has too little room: make room, and run the same command again", to)
	}
	if err = errors.Join(err, e.Close()); err != nil {
		return done, errors.Join(err, at.Leave())
	}
	return done, at.Done()
}
