package graph

import (
	"bytes"
	"context"
	"sync"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	query "github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// containerStore is a Store on a container of the core.
type containerStore struct {
	c     *core.Container
	paths [][]string
	mode  KeyMode
	name  string
}

// Over returns a Store for a container of any API.
func Over(c *core.Container) Store {
	s := &containerStore{c: c, paths: c.KeyPaths()}
	switch {
	case len(s.paths) != 1 || len(s.paths[0]) != 1:
		s.mode = KeyOther
	case s.paths[0][0] == fieldID:
		s.mode = KeyID
	case s.paths[0][0] == fieldKey:
		s.mode = KeySystem
	default:
		s.mode = KeyProperty
		shown, _ := doc.NoSQL.Shown([]byte(s.paths[0][0]))
		s.name = string(shown)
	}
	return s
}

func (s *containerStore) Key() (KeyMode, string) { return s.mode, s.name }

// KeyPaths returns the stored paths of the partition key, for KeyOther.
func (s *containerStore) KeyPaths() [][]string { return s.paths }

// tuple returns the partition key from the array that represents it for a KeyOther container.
func (s *containerStore) tuple(pk value.Value) core.PartitionKey {
	if s.mode != KeyOther || pk.Kind() != value.Array {
		return core.PartitionKey{pk}
	}
	t := make(core.PartitionKey, 0, len(s.paths))
	for it := pk.Iter(); it.Next(); {
		t = append(t, it.Value())
	}
	return t
}

// Get implements Store.
func (s *containerStore) Get(ctx context.Context, pk, id value.Value) (Doc, error) {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	_, err := s.c.ReadInto(ctx, &r.it, &r.mem, s.tuple(pk), id)
	if err != nil {
		if isAbsent(err) {
			return Doc{Charge: 1}, nil
		}
		return Doc{}, err
	}
	d := r.it.Doc
	if !r.mem.Release(d) {
		d = bytes.Clone(d)
	}
	r.it = core.Item{}
	return Doc{Bytes: d, Charge: ru.Read(len(d))}, nil
}

// reader is what a Get needs beside the document that it returns.
type reader struct {
	it  core.Item
	mem core.Mem
}

var readers = sync.Pool{New: func() any { return &reader{} }}

// isAbsent reports whether err means that the item doesn't exist, as opposed to a dropped container.
func isAbsent(err error) bool {
	e := status.From(err)
	return e.Code == status.NotFound && e.Sub != status.SubOwnerNotFound
}

// Find implements Store.
func (s *containerStore) Find(ctx context.Context, f Find) (Rows, error) {
	q := &query.Query{Pred: f.Pred, Limit: f.Limit, Explain: f.Explain}
	if f.PK.IsDefined() {
		q.PK = s.tuple(f.PK)
	}
	if f.Match != nil {
		q.Match = func(it *core.Item) (bool, error) { return f.Match(it.Doc) }
	}
	switch {
	case f.First != nil:
		s.order(q, f.First)
	case f.Shown:
		q.Shown = query.Creation
	}
	rows, err := s.c.Query(ctx, q)
	if err != nil {
		return nil, err
	}
	return containerRows{rows}, nil
}

// order gives a query an order by a property or by ids. The value of a vertex's property is stored as [{_value: ..}],
// or by other APIs as the field itself. Elements without the property aren't wanted.
func (s *containerStore) order(q *query.Query, first *First) {
	key := func(it *core.Item) value.Value { return first.Of(it.Doc) }
	match := q.Match
	q.Match = func(it *core.Item) (bool, error) {
		if !key(it).IsDefined() {
			return false, nil
		}
		if match == nil {
			return true, nil
		}
		return match(it)
	}
	o := query.Order{Desc: first.Desc, Key: key, Own: true}
	switch paths := VertexPaths(first.Key); {
	case first.Key == "":
		o.Path, o.Beside = access.ID, access.NewPath(fieldIDValue)
	case first.Edges, s.mode == KeyProperty && first.Key == s.name:
		o.Path = EdgePaths(first.Key)[0]
	default:
		o.Path, o.Beside = paths[0], paths[1]
	}
	q.OrderBy, q.Compare = []query.Order{o}, first.Values
}

// edgeNeeds are the paths that tell edges from vertices.
var edgeNeeds = []access.Path{access.NewPath(fieldIsEdge)}

// Totals implements Totaler. It asks for the least and the greatest value at _isEdge, and for the numbers of documents
// with a value and without one. If all values are true, the first number is that of the edges. Documents of other APIs
// may have other values there. A row of several documents doesn't tell how many of them are edges then.
//
// Example: 100 vertices have no _isEdge, 500 edges have true. The rows are true (500 documents) and none (100).
func (s *containerStore) Totals(ctx context.Context) (t Totals, ok bool, err error) {
	rows, err := s.c.Query(ctx, &query.Query{Needs: edgeNeeds, Whole: true, Repeat: true, Want: query.WantTally})
	if err != nil {
		return t, false, err
	}
	defer func() {
		t.Read, t.Charge = rows.Stats().Items, rows.Stats().Charge()
		rows.Close()
	}()
	for rows.Next() {
		v := value.ObjectOf(rows.Item().Doc).Get(fieldIsEdge)
		switch {
		case !v.IsDefined():
			t.Vertices += int64(rows.Times())
		case v.Bool():
			t.Edges += int64(rows.Times())
		default:
			return t, false, nil
		}
	}
	return t, rows.Err() == nil, rows.Err()
}

type containerRows struct{ r *query.Rows }

func (r containerRows) Next() bool   { return r.r.Next() }
func (r containerRows) Doc() []byte  { return r.r.Item().Doc }
func (r containerRows) Take() []byte { return r.r.TakeDoc() }
func (r containerRows) Made() uint64 { return r.r.Made() }
func (r containerRows) Err() error   { return r.r.Err() }

// Walked implements Rows.
func (r containerRows) Walked() bool {
	why := r.r.Stats().Plan.Why
	return why == access.EntryOfKey || why == access.OrderInside
}

// Explain implements Explainer.
func (r containerRows) Explain() *plan.Explanation { return r.r.Explain(true) }

// Close implements Rows.
func (r containerRows) Close() float64 {
	c := r.r.Stats().Charge()
	r.r.Close()
	return c
}

// maxElement is the service's limit of a vertex or an edge as it is stored, in bytes. It is that of an item of NoSQL
// and Table too, so a graph that they share has no element that they could not write again.
const maxElement = 2 << 20

// sized refuses an element that is too large. One that another API has made larger can be made smaller.
func sized(d, old []byte) error {
	if len(d) > maxElement && len(d) > len(old) {
		return status.New(status.TooLarge, "Request size is too large: an element may have %d bytes", maxElement)
	}
	return nil
}

// Create implements Store.
func (s *containerStore) Create(ctx context.Context, pk, id value.Value, d []byte) (float64, error) {
	if err := sized(d, nil); err != nil {
		return 0, err
	}
	r, err := s.c.Write(ctx, core.Write{Kind: core.Create, PK: s.tuple(pk), ID: id, Doc: d})
	return r.Charge, err
}

// CreateWith is Create with a record that is read, and changed in the same commit. The core's store must be a shared
// one.
func (s *containerStore) CreateWith(ctx context.Context, pk, id value.Value, d []byte, with *core.Attached) (
	float64, error) {
	if err := sized(d, nil); err != nil {
		return 0, err
	}
	r, err := s.c.Write(ctx, core.Write{Kind: core.Create, PK: s.tuple(pk), ID: id, Doc: d, With: with})
	return r.Charge, err
}

// Update implements Store.
func (s *containerStore) Update(ctx context.Context, pk, id value.Value,
	f func(old []byte) ([]byte, bool, error)) (found bool, charge float64, err error) {
	w := core.Write{Kind: core.Update, PK: s.tuple(pk), ID: id}
	w.Update = func(old *core.Item) (core.Change, error) {
		if found = old != nil; !found {
			return core.Change{Keep: true}, nil
		}
		d, drop, err := f(old.Doc)
		if err == nil {
			err = sized(d, old.Doc)
		}
		return core.Change{Doc: d, Delete: drop, Keep: d == nil && !drop}, err
	}
	r, err := s.c.Write(ctx, w)
	return found, r.Charge, err
}
