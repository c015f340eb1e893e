package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// Move is the record that a store has while it is moved to another storage engine, and afterwards. The source and the
// target have one each, with the same id. No process serves a store whose record is in one of the first three states:
// a start is refused, and a process that serves the store already refuses its requests, because the commit that writes
// the record raises the version of the catalog.
//
// Example: the store in directory "data" is moved to tikv://pd:2379/shop. Its record is {leaving, other: tikv://..}, and
// that of the keyspace is {arriving, other: data, last: the last key that was copied}. At the end the keyspace has
// {arrived}, which is served, and the directory has {left}.
type Move struct {
	ID    string    `json:"id"` // random
	State MoveState `json:"state"`
	Other string    `json:"other"` // the other store, as a sentence names it
	Begun time.Time `json:"begun"`

	// Of a target: the last key that was copied, and the sums of what was copied.
	Last  []byte `json:"last,omitempty"`
	Keys  int64  `json:"keys,omitempty"`
	Items int64  `json:"items,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
}

// MoveState says what a Move record means for its store.
type MoveState string

// The states of a store that is moved.
const (
	MoveLeaving  MoveState = "leaving"  // the source, until the target is complete
	MoveArriving MoveState = "arriving" // the target, until it is complete
	MoveLeft     MoveState = "left"     // the source afterwards: the target is the store now
	MoveArrived  MoveState = "arrived"  // the target afterwards, which is a store like any other
)

// MoveKey returns the key of a store's Move record.
func MoveKey() []byte { return keys.AppendMeta(nil, keys.MetaMove, 0, "") }

// Encode returns the stored form of a record.
func (m *Move) Encode() ([]byte, error) { return encode(m) }

// ReadMove returns the Move record of a store with its stored form; nil when it has none.
func ReadMove(ctx context.Context, eng kv.Engine) (*Move, []byte, error) {
	return decodeMove(eng.Get(ctx, nil, MoveKey()))
}

func decodeMove(b []byte, err error) (*Move, []byte, error) {
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, translate(err)
	}
	m := &Move{}
	if err := decode(b, m); err != nil {
		return nil, nil, err
	}
	return m, b, nil
}

// mayServe returns an error if a store with this stored record must not be served.
func mayServe(b []byte) error {
	m, _, err := decodeMove(b, nil)
	if err != nil {
		return err
	}
	return m.Refusal()
}

// Refusal returns the reason why a store with this record isn't served; nil if it is.
func (m *Move) Refusal() error {
	switch m.State {
	case MoveArrived:
		return nil
	case MoveLeaving:
		return status.New(status.Unavailable, "The store is being moved to %s. Run orrery move again to complete "+
			"that, or orrery move --abandon to keep the store where it is.", m.Other)
	case MoveLeft:
		return status.New(status.Unavailable, "The store was moved to %s. If it is not used there, orrery move "+
			"--abandon makes this one a store again.", m.Other)
	}
	return status.New(status.Unavailable, "This is an incomplete copy of the store %s. Run orrery move again to "+
		"complete it.", m.Other)
}

// ChangeMove puts into b another Move record, nil for none, and the next version of the catalog, so that all processes
// notice it. The preconditions are that the record is still was, its stored form, and that the catalog has the version
// that this process knows.
func (c *Catalog) ChangeMove(b *kv.Batch, was []byte, m *Move) ([]kv.Precondition, error) {
	pre := []kv.Precondition{{Key: MoveKey(), Expect: kv.Absent}, AtVersion(c.Version())}
	if was != nil {
		pre[0].Expect, pre[0].Value = kv.Equal, was
	}
	b.Put(versionKey(), encodeVersion(c.Version()+1))
	if m == nil {
		b.Delete(MoveKey())
		return pre, nil
	}
	v, err := m.Encode()
	b.Put(MoveKey(), v)
	return pre, err
}
