package sqlapi

import (
	"context"
	"math"
	"net/http"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// maxPatch is the largest number of operations in one patch.
const maxPatch = 10

// subConditionNotMet is the sub-status of a patch whose condition is false.
const subConditionNotMet = 1110

var errCondition = status.WithSub(status.PreconditionFailed, subConditionNotMet, msgPrecondition)

// patchOp is one operation of a patch. Its paths have stored names; target and source are the paths as they were sent.
type patchOp struct {
	apply  func(d doc.Doc, o *patchOp) (doc.Doc, error)
	target string
	path   []string
	source string
	from   []string
	value  value.Value
}

// patchKind is an entry of the registry of patch operations.
type patchKind struct {
	needsValue, needsFrom bool
	apply                 func(d doc.Doc, o *patchOp) (doc.Doc, error)
}

// patchKinds are the operations of a patch.
var patchKinds = map[string]patchKind{
	"add":     {needsValue: true, apply: patchAdd},
	"incr":    {needsValue: true, apply: patchIncr},
	"move":    {needsFrom: true, apply: patchMove},
	"remove":  {apply: patchRemove},
	"replace": {needsValue: true, apply: patchReplace},
	"set":     {needsValue: true, apply: patchSet},
}

// patch is a parsed patch document.
type patch struct {
	ops       []patchOp
	condition *sql.Plan // nil: none
	table     bool      // the paths refer to the service's form of entities (tableform.go)
	expires   bool      // the container's items may have a time to live
}

// parsePatch reads a patch: an array of operations, or {"operations": [..], "condition": "from c where .."}.
func (s *Server) parsePatch(ctx context.Context, ct *core.Container, body []byte) (p patch, err error) {
	p.table, p.expires = isTable(ct), expires(ct)
	list, seen, condition := body, true, ""
	if i := json.Space(body, 0); i < len(body) && body[i] == '{' {
		seen = false
		err = json.EachMember(body, func(name string, raw []byte) error {
			switch name {
			case "operations":
				list, seen = raw, true
			case "condition":
				if string(raw) == "null" {
					return nil
				}
				var ok bool
				if condition, ok = json.String(raw); !ok {
					return badPatch("The condition of a patch is not a string.")
				}
			}
			return nil
		})
	}
	if err != nil {
		return p, err
	}
	if !seen {
		return p, missing("operations")
	}
	err = json.EachElement(list, func(raw []byte) error {
		if len(p.ops) == maxPatch {
			return status.New(status.BadRequest, "The number of patch operations cannot exceed %d", maxPatch)
		}
		o, err := parsePatchOp(ct, raw, s.opt.Strict)
		p.ops = append(p.ops, o)
		return err
	})
	if err == nil && len(p.ops) == 0 {
		err = badPatch("A patch needs at least one operation.")
	}
	if err == nil && condition != "" {
		p.condition, err = sql.Compile("SELECT * "+condition, nil, s.env(ctx, ct))
	}
	return p, err
}

// badPatch returns an error in the words of the service, and then what is wrong.
func badPatch(format string, args ...any) error {
	return status.New(status.BadRequest, "Invalid patch request: check syntax of patch specification. "+format, args...)
}

func parsePatchOp(ct *core.Container, raw []byte, strict bool) (o patchOp, err error) {
	var name string
	hasPath, hasFrom := false, false
	err = json.EachMember(raw, func(member string, raw []byte) (err error) {
		ok := true
		switch member {
		case "op":
			name, ok = json.String(raw)
		case "path":
			o.target, ok = json.String(raw)
			hasPath = true
		case "from":
			o.source, ok = json.String(raw)
			hasFrom = true
		case "value":
			if isExtended(ct) {
				o.value, err = doc.ValueFromExtJSON(raw)
			} else {
				o.value, err = doc.ValueFromJSON(raw)
			}
		}
		if !ok {
			return badPatch("The member %s of an operation is not a string.", member)
		}
		return err
	})
	if err != nil {
		return o, err
	}
	k, ok := patchKinds[strings.ToLower(name)]
	switch {
	case !ok:
		return o, badPatch("The operation '%s' is not supported.", clip(name))
	case !hasPath:
		return o, missing("path")
	case k.needsFrom && !hasFrom:
		return o, missing("from")
	case k.needsValue && !o.value.IsDefined():
		return o, missing("value")
	}
	o.apply = k.apply
	if o.path, err = patchPath(ct, o.target, strict); err == nil && k.needsFrom {
		o.from, err = patchPath(ct, o.source, strict)
	}
	return o, err
}

// maxDigits is the length from which on the service refuses a name of digits only in a patch's path: it doesn't fit
// into the 64 bits of an index.
const maxDigits = 20

// patchPath parses a JSON pointer and translates it to stored names. It refuses the id, the partition key and system
// properties; if strict, also long names that look like an index.
func patchPath(ct *core.Container, pointer string, strict bool) ([]string, error) {
	if len(pointer) < 2 || pointer[0] != '/' {
		return nil, badPatch("The path '%s' must begin with '/' and name a property.", clip(pointer))
	}
	segs := strings.Split(pointer[1:], "/")
	if len(segs) > doc.DefaultMaxDepth {
		return nil, badPatch("A path is nested too deeply.")
	}
	for i, s := range segs {
		segs[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
		if strings.IndexByte(segs[i], 0) >= 0 {
			return nil, badPatch("A name in a path holds U+0000.")
		}
		if strict && len(s) >= maxDigits && strings.Trim(s, "0123456789") == "" {
			return nil, status.New(status.BadRequest, "Token('%s') has length longer than expected.", clip(s))
		}
	}
	stored, ok := doc.NoSQL.Stored(segs[0])
	if !ok || stored == "_id" {
		return nil, status.New(status.BadRequest, "Invalid patch request: Cannot patch system property %s.",
			clip(segs[0]))
	}
	segs[0] = stored
	for _, key := range ct.KeyPaths() {
		if isPrefix(key, segs) || isPrefix(segs, key) {
			return nil, status.New(status.BadRequest, "Invalid patch request: the path '%s' concerns the partition "+
				"key, which can't be changed.", clip(pointer))
		}
	}
	return segs, nil
}

func isPrefix(a, b []string) bool {
	if len(a) > len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// run applies a patch to a document.
func (p *patch) run(d doc.Doc) (doc.Doc, error) {
	if p.table {
		d = tableForm(d)
	}
	for i := range p.ops {
		next, err := p.ops[i].apply(d, &p.ops[i])
		if err != nil {
			return nil, status.New(status.BadRequest, "For Operation(%d): %s", i+1, status.From(err).Msg)
		}
		if d = next; len(d) > maxBody {
			return nil, errTooLarge
		}
	}
	if err := doc.Validate(d, doc.DefaultMaxDepth); err != nil {
		return nil, status.New(status.BadRequest, "The item is nested too deeply after the patch.")
	}
	if p.table {
		var err error
		if d, err = tableStored(d); err != nil {
			return nil, err
		}
	}
	return d, checkTTL(doc.Get(d, "ttl"), p.expires)
}

var errPatchMove = status.New(status.BadRequest, "The path of a move can't be a child of its from path.")

// The texts of these errors are the service's, and there are programs that look for parts of them.

func patchAbsent(path, what string) error {
	return status.New(status.BadRequest, "Node(%s) to be %s", clip(path), what)
}

const (
	absentForReplace = "replaced is absent."
	absentForRemove  = "removed is absent. Note: it may also have been removed earlier in the transaction."
	absentForMove    = "moved is absent."
)

func patchIndex(index string) error {
	return status.New(status.BadRequest, "Index(%s) to operate on is out of array bounds", clip(index))
}

func patchNumber(path string) error {
	return status.New(status.BadRequest, "Node(%s) is not a number.", clip(path))
}

// patchParent returns the error for a path whose parent is missing, or is no object or array. It names the first
// segment where that is so.
func patchParent(d doc.Doc, o *patchOp, operation string) error {
	at := 0
	for at < len(o.path)-2 && isParent(doc.Get(d, o.path[:at+1]...)) {
		at++
	}
	return status.New(status.BadRequest, "%s Operation can only create a child object of an existing node(array or "+
		"object) and cannot create path recursively, no path found beyond: '%s'.", operation,
		clip(strings.Split(o.target, "/")[at+1]))
}

func isParent(v value.Value) bool { return v.Kind() == value.Object || v.Kind() == value.Array }

// parentOf returns the object or array that contains the last segment of an operation's path. In an array that segment
// is an index or "-".
func parentOf(d doc.Doc, o *patchOp, operation string) (value.Value, error) {
	v := doc.Get(d, o.path[:len(o.path)-1]...)
	last := o.path[len(o.path)-1]
	switch v.Kind() {
	case value.Object:
		return v, nil
	case value.Array:
		if last == "-" {
			return v, nil
		}
		if i, ok := doc.Index(last); !ok || i > v.Len() {
			return v, patchIndex(last)
		}
		return v, nil
	}
	return v, patchParent(d, o, operation)
}

func patchAdd(d doc.Doc, o *patchOp) (doc.Doc, error) {
	if _, err := parentOf(d, o, "Add"); err != nil {
		return nil, err
	}
	return doc.Insert(d, o.value, o.path...)
}

func patchSet(d doc.Doc, o *patchOp) (doc.Doc, error) {
	v, err := parentOf(d, o, "Given")
	if err != nil {
		return nil, err
	}
	if v.Kind() == value.Array {
		last := o.path[len(o.path)-1]
		if last == "-" {
			return doc.Insert(d, o.value, o.path...)
		}
		if i, _ := doc.Index(last); i >= v.Len() {
			return nil, patchIndex(last)
		}
	}
	return doc.Set(d, o.value, o.path...)
}

func patchReplace(d doc.Doc, o *patchOp) (doc.Doc, error) {
	if !doc.Get(d, o.path...).IsDefined() {
		if _, err := parentOf(d, o, "Given"); err != nil {
			return nil, err
		}
		return nil, patchAbsent(o.target, absentForReplace)
	}
	return doc.Set(d, o.value, o.path...)
}

func patchRemove(d doc.Doc, o *patchOp) (doc.Doc, error) {
	if !doc.Get(d, o.path...).IsDefined() {
		if v := doc.Get(d, o.path[:len(o.path)-1]...); v.Kind() == value.Array {
			return nil, patchIndex(o.path[len(o.path)-1])
		}
		return nil, patchAbsent(o.target, absentForRemove)
	}
	return doc.Remove(d, o.path...)
}

// patchIncr adds to a number. A missing field is created. Integers stay integers while the sum fits.
func patchIncr(d doc.Doc, o *patchOp) (doc.Doc, error) {
	if !o.value.IsNumber() {
		return nil, status.New(status.BadRequest, "The value of an increment is not a number.")
	}
	old := doc.Get(d, o.path...)
	if !old.IsDefined() {
		return patchSet(d, o)
	}
	if !old.IsNumber() || old.Kind() == value.Decimal {
		return nil, patchNumber(o.target)
	}
	return doc.Set(d, sum(old, o.value), o.path...)
}

func sum(a, b value.Value) value.Value {
	if a.Kind() != value.Double && b.Kind() != value.Double {
		x, y := a.Int(), b.Int()
		if s := x + y; (s > x) == (y > 0) {
			return value.IntOf(s)
		}
	}
	f := a.Float() + b.Float()
	if math.IsInf(f, 0) {
		return value.DoubleOf(math.Copysign(math.MaxFloat64, f))
	}
	return value.DoubleOf(f)
}

func patchMove(d doc.Doc, o *patchOp) (doc.Doc, error) {
	v := doc.Get(d, o.from...)
	if !v.IsDefined() {
		return nil, patchAbsent(o.source, absentForMove)
	}
	if len(o.path) > len(o.from) && isPrefix(o.from, o.path) {
		return nil, errPatchMove
	}
	next, err := doc.Remove(d, o.from...)
	if err != nil {
		return nil, err
	}
	if _, err := parentOf(next, o, "Given"); err != nil {
		return nil, err
	}
	return doc.Insert(next, v, o.path...)
}

// write builds the write of a patch, whose condition is computed until ctx ends.
func (p *patch) write(ctx context.Context, pk core.PartitionKey, id value.Value,
	check func(*core.Item) error) core.Write {
	return core.Write{Kind: core.Update, PK: pk, ID: id, Update: func(old *core.Item) (core.Change, error) {
		if old == nil {
			return core.Change{}, errNotFound
		}
		if check != nil {
			if err := check(old); err != nil {
				return core.Change{}, err
			}
		}
		if p.condition != nil {
			ok, err := p.condition.Match(ctx, old)
			if err != nil {
				return core.Change{}, err
			}
			if !ok {
				return core.Change{}, errCondition
			}
		}
		d, err := p.run(old.Doc)
		return core.Change{Doc: d}, err
	}}
}

// patchItem changes parts of an item. The content type isn't checked, because the JavaScript SDK sends none.
func patchItem(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	if err := c.noTriggers(); err != nil {
		return err
	}
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	pk, id, err := c.itemKey(ct, room[:0])
	if err != nil {
		return err
	}
	p, err := c.s.parsePatch(c.Ctx(), ct, c.Body)
	if err != nil {
		return err
	}
	check := conditions(header(c.In, hIfMatch), header(c.In, hIfNoneMatch))
	res, err := ct.Write(c.Ctx(), p.write(c.Ctx(), pk, id, check))
	if err != nil {
		c.setSession(ct, pk)
		return err
	}
	c.Charge = res.Charge
	c.setItemETag(res.Item)
	c.setSlot(ct, res.Slot)
	if !c.minimal() {
		c.Out = appendShown(c.Out[:0], ct, res.Item)
	}
	return c.send(http.StatusOK)
}
