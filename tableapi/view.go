package tableapi

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
)

// view presents a container as a table. A native container was made by the Table API; its partition key path is /$pk.
// Any other container can be shown too: with its partition key as PartitionKey and its ids as RowKey, both as text.
//
// Example: a NoSQL container with the path /city and the item {"id": "7", "city": "Rome", "n": 1} has the entity
// PartitionKey 'Rome', RowKey '7', n 1.
type view struct {
	*core.Container
	table  string
	native bool
	paths  [][]string // of the partition key, with stored names
}

// view finds a table: a container of the database TablesDB, ignoring the case of its name, or `database.container`.
func (s *Server) view(ctx context.Context, table string) (*view, error) {
	names := s.e.Within(ctx)
	c, err := names.ContainerFold(Database, table)
	if err == nil {
		table = c.ID()
	}
	for i := 0; status.Is(err, status.NotFound) && i < len(table); i++ {
		if table[i] == '.' {
			c, err = names.Container(table[:i], table[i+1:])
		}
	}
	if err != nil {
		return nil, notFound(err, "TableNotFound")
	}
	v := &view{Container: c, table: table, paths: c.KeyPaths()}
	v.native = len(v.paths) == 1 && len(v.paths[0]) == 1 && v.paths[0][0] == edm.PartitionField
	return v, nil
}

// signedTable finds the table that a signature names; nil if there is none. Signatures don't distinguish case, so a
// name that matches several containers opens none of them: other APIs may have made such containers. The names of
// tables differ in more than case (core.ContainerSpec.FoldID).
func (s *Server) signedTable(ctx context.Context, name string) (*core.Container, error) {
	found, err := s.e.ContainersFold(ctx, Database, name)
	for i := 0; err == nil && i < len(name); i++ {
		if name[i] != '.' {
			continue
		}
		dbs, derr := s.e.Databases(ctx)
		if derr != nil {
			return nil, derr
		}
		for _, d := range dbs {
			if strings.EqualFold(d.ID, name[:i]) {
				var more []*core.Container
				if more, err = s.e.ContainersFold(ctx, d.ID, name[i+1:]); err == nil {
					found = append(found, more...)
				}
			}
		}
	}
	if err != nil || len(found) != 1 {
		return nil, err
	}
	return found[0], nil
}

// key is the stored key of one item.
type key struct {
	pk core.PartitionKey
	id value.Value
}

// key returns the key with which a new item is stored: both parts as strings; a partition key with several levels is
// given as a JSON array.
func (v *view) key(pk, rk string) (key, error) {
	pks := v.partitionKeys(pk)
	if len(pks) == 0 {
		return key{}, errorMsg("InvalidInput", "The PartitionKey of this table is a JSON array with one value for "+
			"each level.")
	}
	return key{pks[0], value.StringOf(rk)}, nil
}

// keys returns all stored keys that the view shows as (pk, rk), the most likely first. Keys are text here, but other
// APIs may have stored numbers, ObjectIds and others.
func (v *view) keys(pk, rk string) []key {
	if v.byID() && pk != rk {
		return nil
	}
	ids := core.IdentityFromText(rk)
	var out []key
	for _, k := range v.partitionKeys(pk) {
		for _, id := range ids {
			if v.byID() {
				k = core.PartitionKey{id}
			}
			out = append(out, key{k, id})
		}
		if v.byID() {
			break
		}
	}
	return out
}

// byID reports whether the partition key is the id itself.
func (v *view) byID() bool {
	return len(v.paths) == 1 && len(v.paths[0]) == 1 && v.paths[0][0] == "_id"
}

// partitionKeys returns the stored partition keys that are shown as this text. The first is that of new entities.
func (v *view) partitionKeys(text string) []core.PartitionKey {
	if len(v.paths) == 1 {
		out := []core.PartitionKey{{value.StringOf(text)}}
		if v.native {
			return out
		}
		if text == "" {
			out = append(out, core.PartitionKey{value.Undef()})
			if v.Spec().PartitionKey.SystemKey { // all items of a container without a key have none
				slices.Reverse(out)
			}
			return out
		}
		if val, ok := keyFromText(text); ok {
			out = append(out, core.PartitionKey{val})
		}
		return out
	}
	arr, err := doc.ValueFromExtJSON([]byte(text))
	if err != nil || arr.Kind() != value.Array || arr.Len() != len(v.paths) {
		return nil
	}
	out := []core.PartitionKey{make(core.PartitionKey, 0, len(v.paths))}
	for it := arr.Iter(); it.Next(); {
		for i := range out {
			if it.Value().Kind() == value.Null { // a missing level is shown as null too
				out = append(out, append(slices.Clone(out[i]), value.Undef()))
			}
			out[i] = append(out[i], it.Value())
		}
	}
	return out
}

// keyFromText reads a text that appendKeyText made of a value that isn't a string.
func keyFromText(text string) (value.Value, bool) {
	v, err := doc.ValueFromExtJSON([]byte(text))
	if err != nil || v.Kind() == value.String {
		return value.Value{}, false
	}
	if text[0] != '{' && text[0] != '[' {
		return v, true
	}
	return v, string(appendKeyText(nil, v)) == text
}

// appendKeyText appends a value of a partition key: a number, boolean or null as JSON, others as canonical Extended
// JSON. Equal values have equal texts, so whole doubles are written as integers.
func appendKeyText(dst []byte, v value.Value) []byte {
	v = value.Canonical(v)
	switch v.Kind() {
	case value.Null, value.Bool, value.Int32, value.Int64:
		return doc.AppendJSON(dst, v)
	case value.Double:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return doc.AppendJSON(dst, v)
		}
	}
	return doc.AppendExtJSON(dst, v, false)
}

// locate returns the stored key of an existing entity, or the key with which it would be stored.
func (v *view) locate(c *call, pk, rk string) (key, error) {
	ks := v.keys(pk, rk)
	for _, k := range ks {
		if len(ks) == 1 {
			break
		}
		_, err := v.Read(c.Ctx(), k.pk, k.id)
		if err == nil {
			return k, nil
		}
		if !status.Is(err, status.NotFound) && !status.Is(err, status.BadRequest) {
			return key{}, err
		}
	}
	return v.key(pk, rk)
}

// read does the point read of an entity.
func (v *view) read(c *call, pk, rk string) (*core.Item, error) {
	it, err := v.Read(c.Ctx(), core.PartitionKey{value.StringOf(pk)}, value.StringOf(rk))
	if err == nil || v.native && !core.HasOtherIdentity(rk) {
		return it, err
	}
	for _, k := range v.keys(pk, rk) {
		other, err2 := v.Read(c.Ctx(), k.pk, k.id)
		if err2 == nil {
			return other, nil
		}
		if !status.Is(err2, status.NotFound) && !status.Is(err2, status.BadRequest) {
			return other, err2
		}
	}
	if status.Is(err, status.BadRequest) { // no item can have a key of this shape
		err = status.New(status.NotFound, "The specified resource does not exist.")
	}
	return it, err
}

// row fills r from an item. For a native item the keys point into its document.
func (v *view) row(r *edm.Row, it *core.Item) {
	r.Doc, r.Ticks = it.Doc, it.Ticks
	id := value.Lookup(it.Doc, "_id")
	if id.Kind() == value.String {
		r.RowKey = id.Bytes()
	} else {
		r.RowKey = []byte(core.IdentityText(id))
	}
	if v.native {
		if pk := value.Lookup(it.Doc, edm.PartitionField); pk.Kind() == value.String {
			r.PartitionKey = pk.Bytes()
			return
		}
	}
	r.PartitionKey = v.keyText(it)
}

// keyText returns the text of a partition key: a string unchanged, a missing one as "", another value as appendKeyText
// writes it, several levels as a JSON array.
func (v *view) keyText(it *core.Item) []byte {
	pk, _, err := v.KeyOf(it.Doc)
	if err != nil {
		return nil
	}
	if len(pk) == 1 {
		switch pk[0].Kind() {
		case value.String:
			return pk[0].Bytes()
		case value.Undefined:
			return nil
		}
		if v.byID() {
			return []byte(core.IdentityText(pk[0]))
		}
		return appendKeyText(nil, pk[0])
	}
	out := []byte{'['}
	for i, p := range pk {
		if i > 0 {
			out = append(out, ',')
		}
		switch p.Kind() {
		case value.Undefined:
			out = append(out, "null"...)
		case value.String:
			out = doc.AppendJSON(out, p)
		default:
			out = appendKeyText(out, p)
		}
	}
	return append(out, ']')
}

// appendNew builds the document of a new entity. The bytes are valid until the builder's next use.
func (v *view) appendNew(b *doc.Builder, k key, e *edm.Entity) ([]byte, error) {
	b.Reset()
	b.BeginObject()
	if v.native {
		b.Field(edm.PartitionField, k.pk[0])
	}
	b.Field("_id", k.id)
	for i := range e.Props {
		if p := &e.Props[i]; p.Value.IsDefined() {
			v.field(b, p)
		}
	}
	b.End()
	if v.native {
		return sized(b.Doc())
	}
	if v.byID() && !value.EqualCosmos(k.pk[0], k.id) {
		return nil, errorMsg("InvalidInput", "PartitionKey and RowKey must be equal: the container's partition key "+
			"is the id.")
	}
	return v.withKey(b.Doc(), k)
}

func (v *view) field(b *doc.Builder, p *edm.Prop) {
	if len(p.Name) == 3 && string(p.Name) == "_id" {
		b.Field(edm.StoredName("_id"), p.Value)
	} else {
		b.FieldBytes(p.Name, p.Value)
	}
}

// withKey adds the partition key to a document of a container whose partition key path isn't /$pk. If the entity has
// that property itself, the two must be equal.
func (v *view) withKey(d []byte, k key) ([]byte, error) {
	for i, path := range v.paths {
		have := doc.Get(d, path...)
		switch {
		case have.IsDefined() && value.EqualCosmos(have, k.pk[i]):
		case have.IsDefined():
			return nil, errorMsg("InvalidInput", "PartitionKey differs from the value of the container's partition "+
				"key path.")
		case k.pk[i].IsDefined():
			var err error
			if d, err = doc.Set(d, k.pk[i], path...); err != nil {
				return nil, errorMsg("InvalidInput", "The container's partition key path can't be set in this entity.")
			}
		}
	}
	return sized(d)
}

// check refuses properties that a container of another API can't store: `id` is the identity there.
func (v *view) check(e *edm.Entity) error {
	if v.native {
		return nil
	}
	for i := range e.Props {
		if string(e.Props[i].Name) == "id" {
			return errorMsg("PropertyNameInvalid", "The property name is invalid: id is the RowKey of this table.")
		}
	}
	return nil
}

// appendMerged builds a document from old with the properties of e. Without replace, properties that e doesn't have are
// kept; with replace they are dropped. A value that the Table API shows read-only is kept if e contains it as it was
// shown; another value for it is InvalidInput.
func (v *view) appendMerged(b *doc.Builder, old []byte, e *edm.Entity, replace bool, k key) ([]byte, error) {
	b.Reset()
	b.BeginObject()
	count := 0
	for it := doc.Value(old).Iter(); it.Next(); {
		name := it.Key()
		isKey := string(name) == "_id" || v.native && string(name) == edm.PartitionField
		p := find(e, name)
		switch {
		case isKey, p == nil && !replace:
			b.Element(it.Element())
			if !isKey {
				count++
			}
		case p == nil:
		case edm.ReadOnly(it.Value()):
			if p.Value.Kind() != value.String || string(p.Value.Bytes()) != string(edm.StringText(it.Value())) {
				return nil, errorMsg("InvalidInput", "The property "+string(p.Name)+" holds a value that the Table "+
					"API can't change.")
			}
			b.Element(it.Element())
			count++
		default:
			v.field(b, p)
			count++
		}
	}
	for i := range e.Props {
		p := &e.Props[i]
		if p.Value.IsDefined() && !value.Lookup(old, edm.StoredName(string(p.Name))).IsDefined() {
			v.field(b, p)
			count++
		}
	}
	b.End()
	if count > edm.MaxProperties {
		return nil, newError("TooManyProperties")
	}
	if v.native {
		return sized(b.Doc())
	}
	return v.withKey(b.Doc(), k)
}

// maxEntity is the service's limit of an item in bytes.
const maxEntity = 2 << 20

func sized(d []byte) ([]byte, error) {
	if len(d) > maxEntity {
		return nil, newError("EntityTooLarge")
	}
	return d, nil
}

// readOnly reports whether a document has values that the Table API shows but can't change.
func readOnly(d []byte) bool {
	for it := doc.Value(d).Iter(); it.Next(); {
		if edm.ReadOnly(it.Value()) {
			return true
		}
	}
	return false
}

// find returns the property of e that is stored as name and has a value.
func find(e *edm.Entity, name []byte) *edm.Prop {
	shown, _ := strings.CutPrefix(string(name), "\x01")
	for i := range e.Props {
		if p := &e.Props[i]; p.Value.IsDefined() && string(p.Name) == shown && edm.StoredName(shown) == string(name) {
			return p
		}
	}
	return nil
}
