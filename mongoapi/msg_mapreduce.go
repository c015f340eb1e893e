package mongoapi

import (
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// reduction is a running mapReduce. Documents are mapped in batches. The values of a key are kept until there are
// mostOfKey, and then reduced to one, which the command's definition allows.
//
// Example: map emits (k, 1) for each of 5,000 documents with one k. At 1,000 values reduce makes 1,000 of them, and so
// on; at the end it gets 4,001 as 1,000 + .. and the rest.
type reduction struct {
	r                     *request
	mapper, reducer, last expr.Script
	finalizes             bool
	keys                  map[uint64][]*reduced
	all                   []*reduced
	mem                   *budget.Account
	out                   mapOut
}

// reduced is one key with the values that were emitted for it.
type reduced struct {
	key    value.Value
	values []value.Value
	size   int
}

// Bounds of the batches that a worker gets.
const (
	mostMapped = 500       // documents
	mapBytes   = 512 << 10 // bytes of documents
	mostOfKey  = 1000      // values of a key
)

// mapOut says where the result goes.
type mapOut struct {
	mode     string // inline, replace, merge, reduce
	db, coll string
	given    bool // the database was named
}

func mapReduce(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	env := r.exprEnv()
	if !env.Run.Scripts() {
		return dst, merr.New(31264, "Cannot run server-side javascript without the javascript engine enabled")
	}
	m := &reduction{r: r, keys: map[uint64][]*reduced{}, mem: r.s.eng.Budget().Open("mapReduce")}
	defer m.mem.Close()
	if err := m.arguments(); err != nil {
		return dst, err
	}
	f, err := filter.Compile(args.Given(r.body, "query"), r.filterOptions(nil))
	if err != nil {
		return dst, err
	}
	o, err := order.Compile(args.Given(r.body, "sort"))
	if err != nil {
		return dst, err
	}
	limit := int64(0)
	if l := args.Given(r.body, "limit"); l.IsDefined() {
		if limit, err = count64([]byte("limit"), l); err != nil {
			return dst, err
		}
	}
	k, err := r.open(r.db, name)
	if err != nil {
		return dst, err
	}
	if k == nil {
		return dst, merr.New(merr.NamespaceNotFound, "ns doesn't exist")
	}
	src := newSource(k, f, o, exec.Creation, 0, limit, env)
	defer src.Close()
	if err := m.mapAll(src); err != nil {
		return dst, err
	}
	r.charge += src.charge
	docs, err := m.results()
	if err != nil {
		return dst, err
	}
	if m.out.mode == "inline" {
		return value.AppendElement(dst, "results", value.MakeArray(docs)), nil
	}
	if err := m.write(docs); err != nil {
		return dst, err
	}
	if !m.out.given {
		return bson.AppendString(dst, "result", m.out.coll), nil
	}
	at, dst := bson.BeginObject(dst, "result")
	dst = bson.AppendString(dst, "db", m.out.db)
	return bson.End(bson.AppendString(dst, "collection", m.out.coll), at), nil
}

// arguments reads the functions and the target.
func (m *reduction) arguments() error {
	body := m.r.body
	for _, a := range []struct {
		name string
		to   *expr.Script
	}{{"map", &m.mapper}, {"reduce", &m.reducer}, {"finalize", &m.last}} {
		v := args.Given(body, a.name)
		s, ok := expr.NewScript(v)
		switch {
		case ok:
			*a.to = s
			m.finalizes = m.finalizes || a.name == "finalize"
		case v.IsDefined():
			return merr.New(merr.TypeMismatch, "BSON field 'mapReduce.%s' is the wrong type '%s', expected type "+
				"'string'", a.name, expr.TypeName(v))
		case a.name != "finalize":
			return merr.New(merr.MissingField, "BSON field 'mapReduce.%s' is missing but a required field", a.name)
		}
	}
	if scope := args.Given(body, "scope"); scope.IsDefined() {
		m.mapper, m.reducer, m.last = m.mapper.With(scope), m.reducer.With(scope), m.last.With(scope)
	}
	return m.target(args.Given(body, "out"))
}

func (m *reduction) target(out value.Value) error {
	m.out = mapOut{mode: "replace", db: m.r.db}
	switch out.Kind() {
	case value.String:
		m.out.coll = out.Str()
	case value.Object:
		m.out.mode = ""
		for it := out.Iter(); it.Next(); {
			switch name, v := string(it.Key()), it.Value(); name {
			case "inline":
				m.out.mode = name
			case "replace", "merge", "reduce":
				m.out.mode, m.out.coll = name, v.Str()
			case "db":
				m.out.db, m.out.given = v.Str(), true
			case "sharded", "nonAtomic":
			default:
				return merr.New(merr.UnknownField, "BSON field 'mapReduce.out.%s' is an unknown field.", name)
			}
		}
		if m.out.mode == "" {
			return merr.New(merr.BadValue, "'out' requires 'inline', 'replace', 'merge' or 'reduce'")
		}
	case value.Undefined:
		return merr.New(merr.MissingField, "BSON field 'mapReduce.out' is missing but a required field")
	default:
		return merr.New(13606, "'out' must be a string or an object")
	}
	if m.out.mode == "inline" {
		return nil
	}
	if err := validDB(m.out.db); err != nil {
		return err
	}
	return validCollection(m.out.db, m.out.coll)
}

// mapAll calls map for all documents.
func (m *reduction) mapAll(src *source) error {
	for more := true; more; {
		var calls []value.Value
		for size := 0; len(calls) < mostMapped && size < mapBytes; {
			d, ok, err := src.Next()
			if err != nil {
				return err
			}
			if more = ok; !ok {
				break
			}
			size += len(d.Bytes())
			calls = append(calls, value.MakeArray([]value.Value{d}))
		}
		if len(calls) == 0 {
			return nil
		}
		pairs, err := m.r.exprEnv().Run.Emits(m.mapper, calls)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if err := m.emit(p.At(0), p.At(1)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *reduction) emit(key, v value.Value) error {
	if !key.IsDefined() {
		key = value.NullValue()
	}
	h := value.HashBSON(key)
	i := slices.IndexFunc(m.keys[h], func(x *reduced) bool { return value.EqualBSON(x.key, key) })
	if i < 0 {
		if err := m.mem.Grow(int64(len(key.Bytes()) + 160)); err != nil {
			return err
		}
		x := &reduced{key: key}
		m.keys[h], m.all = append(m.keys[h], x), append(m.all, x)
		i = len(m.keys[h]) - 1
	}
	x := m.keys[h][i]
	n := len(v.Bytes()) + 64
	if err := m.mem.Grow(int64(n)); err != nil {
		return err
	}
	x.values, x.size = append(x.values, v), x.size+n
	if len(x.values) >= mostOfKey || x.size > mapBytes && len(x.values) > 1 {
		return m.reduce([]*reduced{x})
	}
	return nil
}

// reduce makes one value of those of each key.
func (m *reduction) reduce(xs []*reduced) error {
	calls := make([]value.Value, len(xs))
	for i, x := range xs {
		calls[i] = value.MakeArray([]value.Value{value.NullValue(), x.key, value.MakeArray(x.values)})
	}
	out, err := m.r.exprEnv().Run.Values(m.reducer, calls)
	if err != nil {
		return err
	}
	for i, x := range xs {
		n := len(out[i].Bytes()) + 64
		if err := m.mem.Grow(int64(n)); err != nil {
			return err
		}
		m.mem.Shrink(int64(x.size))
		x.values, x.size = []value.Value{out[i]}, n
	}
	return nil
}

// results reduces what is left, finalizes it, and returns the documents in the order of their keys.
func (m *reduction) results() ([]value.Value, error) {
	slices.SortFunc(m.all, func(a, b *reduced) int { return value.CompareBSON(a.key, b.key) })
	var batch []*reduced
	size := 0
	for i, x := range m.all {
		if len(x.values) > 1 {
			batch, size = append(batch, x), size+x.size
		}
		if len(batch) > 0 && (len(batch) >= mostMapped || size > mapBytes || i == len(m.all)-1) {
			if err := m.reduce(batch); err != nil {
				return nil, err
			}
			batch, size = nil, 0
		}
	}
	docs := make([]value.Value, 0, len(m.all))
	for from := 0; from < len(m.all); from += mostMapped {
		part := m.all[from:min(from+mostMapped, len(m.all))]
		if m.finalizes {
			if err := m.finalize(part); err != nil {
				return nil, err
			}
		}
		for _, x := range part {
			docs = append(docs, resultOf(x.key, x.values[0]))
		}
	}
	return docs, nil
}

func (m *reduction) finalize(xs []*reduced) error {
	calls := make([]value.Value, len(xs))
	for i, x := range xs {
		calls[i] = value.MakeArray([]value.Value{value.NullValue(), x.key, x.values[0]})
	}
	out, err := m.r.exprEnv().Run.Values(m.last, calls)
	for i := range out {
		xs[i].values[0] = out[i]
	}
	return err
}

func resultOf(key, v value.Value) value.Value {
	if !v.IsDefined() {
		v = value.NullValue()
	}
	at, b := bson.Begin(nil)
	b = value.AppendElement(b, "_id", key)
	return value.ObjectOf(bson.End(value.AppendElement(b, "value", v), at))
}

// write writes the result into its collection.
func (m *reduction) write(docs []value.Value) error {
	h := &host{r: m.r, db: m.out.db}
	if m.out.mode == "replace" {
		return h.out(m.out.db, m.out.coll, agg.NewSlice(docs))
	}
	k, _, err := m.r.ensure(m.out.db, m.out.coll)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if m.out.mode == "reduce" {
			if d, err = m.withStored(k, d); err != nil {
				return err
			}
		}
		w := agg.WriteSpec{On: []string{"_id"}, WhenMatched: "replace", WhenNotMatched: "insert"}
		if err := h.merge(k, d, w); err != nil {
			return err
		}
	}
	return nil
}

// withStored reduces a result with the stored one of its key.
func (m *reduction) withStored(k *coll, d value.Value) (value.Value, error) {
	pk, id, err := k.KeyOf(d.Bytes())
	if err != nil {
		return d, err
	}
	var old *core.Item
	if old, err = k.Read(m.r.ctx, pk, id); err != nil {
		if status.Is(err, status.NotFound) {
			err = nil
		}
		return d, err
	}
	x := &reduced{key: d.Get("_id"), values: []value.Value{value.ObjectOf(old.Doc).Get("value"), d.Get("value")}}
	if err := m.reduce([]*reduced{x}); err != nil {
		return d, err
	}
	if m.finalizes {
		if err := m.finalize([]*reduced{x}); err != nil {
			return d, err
		}
	}
	return resultOf(x.key, x.values[0]), nil
}
