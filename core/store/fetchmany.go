package store

import (
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// Many is a chunk of items that are fetched with one read of the engine. Its items are valid until its next Reset. The
// zero value is empty.
type Many struct {
	keys [][]byte
	mem  []byte // of keys
	vals kv.Values
}

// chunkBytes bounds the memory of one read of a chunk, without its last item.
const chunkBytes = 1 << 20

// Reset empties the chunk and keeps its memory.
func (m *Many) Reset() { m.keys, m.mem = m.keys[:0], m.mem[:0] }

// Len returns the number of named items.
func (m *Many) Len() int { return len(m.keys) }

// Size returns the number of bytes of memory that the chunk keeps.
func (m *Many) Size() int { return cap(m.mem) + m.vals.Cap() }

// Name adds the item with this identity (tuple, id) in a slot to a chunk.
func (v *View) Name(m *Many, slot *ViewSlot, ident []byte) (err error) {
	at := len(m.mem)
	mem := keys.AppendPrefix(m.mem, slot.key, keys.KindItem)
	if mem, err = v.c.appendPlace(mem, ident); err != nil {
		return err
	}
	m.mem = append(mem, ident...)
	m.keys = append(m.keys, m.mem[at:len(m.mem):len(m.mem)])
	return nil
}

// FetchMany reads the named items in order and returns how many it has read: all, or fewer if they are large, but at
// least one. The remaining items must be named again.
func (v *View) FetchMany(m *Many) (n int, err error) {
	m.vals.Most = chunkBytes
	if err := v.snap.GetMany(&m.vals, m.keys); err != nil {
		return 0, translate(err)
	}
	return m.vals.Len(), nil
}

// Take reads the i-th named item into it. It returns false when the item is absent or expired.
func (v *View) Take(it *Item, m *Many, i int) (bool, error) {
	b := m.vals.At(i)
	if b == nil {
		return false, nil
	}
	return v.Decode(it, m.keys[i][keys.PrefixLen:], b)
}

// Remote reports whether reads of the view go over a network: see kv.Engine.
func (v *View) Remote() bool { return v.c.st.eng.Remote() }

// NameSuffix adds the item with this suffix (placement, tuple, id) in a slot to a chunk.
func (v *View) NameSuffix(m *Many, slot *ViewSlot, suffix []byte) {
	at := len(m.mem)
	m.mem = append(keys.AppendPrefix(m.mem, slot.key, keys.KindItem), suffix...)
	m.keys = append(m.keys, m.mem[at:len(m.mem):len(m.mem)])
}
