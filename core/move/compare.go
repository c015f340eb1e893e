package move

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/work"
)

// compare reads all keys of both stores and compares them. A difference means that the copy is damaged, or that
// somebody has written to one of the stores.
func (m *mover) compare(ctx context.Context) error {
	m.Watch.Task("comparing items", false)
	from, to := newReader(m.from, true), newReader(m.to, false)
	defer from.close()
	defer to.close()
	var items int64
	var want, got kv.Batch
	for {
		var ends [2]bool
		err := work.Each(2, 2, func(i, _ int) (err error) {
			if i == 0 {
				ends[0], err = from.read(ctx, &want, m.Part)
			} else {
				ends[1], err = to.read(ctx, &got, m.Part)
			}
			return err
		})
		if err != nil {
			return m.unread(err)
		}
		if err := m.same(&want, &got); err != nil {
			return err
		}
		for i := range want.Len() {
			if isItem(want.Op(i).Key) {
				items++
			}
		}
		m.Watch.Set(items, m.items)
		if ends[0] && ends[1] {
			return nil
		}
		want.Reset()
		got.Reset()
	}
}

// same compares parts of both stores. Parts of the same keys and values end at the same key.
func (m *mover) same(want, got *kv.Batch) error {
	differs := func(key []byte, what string) error {
		return refused("%s is no true copy of %s: %s %s. Neither was changed. Find out why, for example with orrery "+
			"check; then orrery move --abandon makes %s a store again, and it can be moved to another place.",
			m.To, m.From, describe(key), what, m.From)
	}
	for i := range max(want.Len(), got.Len()) {
		switch {
		case i >= want.Len():
			return differs(got.Op(i).Key, "is only in the copy")
		case i >= got.Len():
			return differs(want.Op(i).Key, "is missing in the copy")
		}
		a, b := want.Op(i), got.Op(i)
		switch c := bytes.Compare(a.Key, b.Key); {
		case c < 0:
			return differs(a.Key, "is missing in the copy")
		case c > 0:
			return differs(b.Key, "is only in the copy")
		case !bytes.Equal(a.Value, b.Value):
			return differs(a.Key, "has another value in the copy")
		}
	}
	return nil
}

// checks is how often a store over a network is checked before what the check finds counts: a store that doesn't answer
// for a moment is a problem that it reports.
const checks = 3

// check verifies the target as `orrery check` does.
func (m *mover) check(ctx context.Context) error {
	for n := 1; ; n++ {
		m.Watch.Task("checking items", false)
		problems, err := m.problems(ctx)
		if err != nil || problems == nil || ctx.Err() != nil || !m.to.Remote() || n >= checks {
			return errors.Join(problems, err)
		}
	}
}

// problems returns what a check of the target finds.
func (m *mover) problems(ctx context.Context) (found, err error) {
	eng, err := core.Open(ctx, kept{m.to}, core.Options{ReadOnly: true, Clock: m.Clock})
	if err != nil {
		return nil, err
	}
	var all []error
	err = eng.CheckWatched(ctx, core.CheckWatch{Progress: m.Watch.Set, Problem: func(what string) {
		all = append(all, fmt.Errorf("the copy in %s has a problem: %s", m.To, what))
	}})
	return errors.Join(all...), errors.Join(err, eng.Close())
}

// kept is an engine that stays open when the core on it is closed.
type kept struct{ kv.Engine }

// Close implements kv.Engine.
func (kept) Close() error { return nil }
