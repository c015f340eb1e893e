package move

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/work"
)

// sleep rests before the next attempt. It returns false when ctx has ended.
func sleep(ctx context.Context) bool { return work.Sleep(ctx, rest) }

// ahead is the number of keys that a reader announces. An engine over a network reads so many at once.
const ahead = 512

// maxKeys is the largest number of keys in a part. Most keys are index entries of some 100 bytes.
const maxKeys = 1 << 15

// reader reads all keys of a store in order. Nobody writes to the store, so when a snapshot has become too old the
// reader goes on in another one.
type reader struct {
	eng      kv.Engine
	convert  bool // values are given as the target has them
	next, hi []byte
	snap     kv.Snapshot
	it       kv.Iterator
	on       bool // the iterator is on the key that is read next
}

func newReader(eng kv.Engine, convert bool) *reader {
	lo, hi := keys.Bounds()
	return &reader{eng: eng, convert: convert, next: lo, hi: hi}
}

// after continues behind a key.
func (r *reader) after(key []byte) {
	if len(key) > 0 {
		r.next = append(append([]byte(nil), key...), 0)
	}
}

// read puts the next keys into b, until it has so many bytes. end says that there are no more.
func (r *reader) read(ctx context.Context, b *kv.Batch, most int) (end bool, err error) {
	err = steadily(ctx, func() (err error) {
		if end, err = r.attempt(ctx, b, most); err != nil {
			r.close()
		}
		return err
	})
	return end, err
}

// attempt continues a read. What is in b stays there, and is before next.
func (r *reader) attempt(ctx context.Context, b *kv.Batch, most int) (end bool, err error) {
	if r.it == nil {
		if err := r.open(ctx); err != nil {
			return false, err
		}
	}
	for ; r.on; r.on = r.it.Next() {
		if b.Size() >= most || b.Len() >= maxKeys {
			return false, nil
		}
		key := r.it.Key()
		val, ok := r.it.Value(), counts(key)
		if ok && r.convert {
			if val, ok, err = carried(key, val); err != nil {
				return false, err
			}
		}
		if ok {
			b.Put(key, val)
		}
		r.next = append(append(r.next[:0:0], key...), 0)
	}
	return r.it.Err() == nil, r.it.Err()
}

func (r *reader) open(ctx context.Context) (err error) {
	if r.snap, err = r.eng.Snapshot(ctx); err != nil {
		return err
	}
	if r.it, err = r.snap.Iter(r.next, r.hi); err != nil {
		return err
	}
	r.it.Ahead(ahead)
	r.on = r.it.First()
	return r.it.Err()
}

func (r *reader) close() {
	if r.it != nil {
		_ = r.it.Close()
	}
	if r.snap != nil {
		_ = r.snap.Close()
	}
	r.it, r.snap = nil, nil
}

// begin writes the record of the target, and tells its engine where slots will begin.
func (m *mover) begin(ctx context.Context) error {
	if m.dst == nil {
		next := catalog.Move{ID: m.src.ID, State: catalog.MoveArriving, Other: m.From, Begun: m.src.Begun}
		if err := m.target(ctx, &kv.Batch{}, next); err != nil {
			return err
		}
	}
	p, ok := m.to.(kv.Presplitter)
	if !ok {
		return nil
	}
	for def, err := range m.cat.All(ctx) {
		if err != nil {
			return err
		}
		var begins [][]byte
		for s := range def.SlotKeys() {
			lo, _ := keys.SlotBounds(s)
			begins = append(begins, lo)
		}
		if len(begins) > 1 {
			_ = p.Presplit(ctx, begins) // else the engine divides ranges when they have grown
		}
	}
	return nil
}

// copyAll copies everything that isn't copied yet. While one part is written the next one is read.
func (m *mover) copyAll(ctx context.Context) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	m.Watch.Task("copying items", false)
	r := newReader(m.from, true)
	defer r.close()
	r.after(m.dst.Last)
	var b, ahead kv.Batch
	end, err := r.read(ctx, &b, m.Part)
	for err == nil && b.Len() > 0 {
		var last bool
		err = work.Each(2, 2, func(i, _ int) (err error) {
			switch {
			case i == 0:
				return m.write(ctx, &b)
			case !end:
				last, err = r.read(ctx, &ahead, m.Part)
			}
			return err
		})
		m.Watch.Set(m.dst.Items, m.items)
		b, ahead, end = ahead, b, end || last
		ahead.Reset()
	}
	return m.unread(err)
}

// write writes a part, with the record of what is copied now.
func (m *mover) write(ctx context.Context, b *kv.Batch) error {
	next := *m.dst
	next.Keys += int64(b.Len())
	next.Bytes += int64(b.Size())
	for i := range b.Len() {
		if isItem(b.Op(i).Key) {
			next.Items++
		}
	}
	next.Last = append([]byte(nil), b.Op(b.Len()-1).Key...)
	return m.target(ctx, b, next)
}

// unread explains an error of the copy.
func (m *mover) unread(err error) error {
	switch {
	case errors.Is(err, kv.ErrCorruption):
		return refused("Stored data is corrupt: orrery check says more. %s", err)
	case errors.Is(err, kv.ErrFull):
		return refused("%s has no room for the store. The same command continues when there is room.", m.To)
	}
	return err
}
