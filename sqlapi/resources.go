package sqlapi

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/sqlapi/wire"

	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
)

// resourceType is one type of resource that the catalog stores for this API: users, permissions, client encryption
// keys, and the programs of a container. They share the handlers of all verbs. A resourceType has what differs between
// them.
type resourceType struct {
	kind    core.ResourceKind
	segment string // segment in paths
	param   string // parameter of the route that names a resource
	feed    string // member of the feed's envelope
	renames bool   // a replace may change the id
	upserts bool
	program bool // it belongs to a container
	most    int  // of one parent; 0: no limit

	// parse builds a resource from a request's body. The id is checked already.
	parse func(c *call, body map[string]json.RawMessage) (core.Resource, error)
	// members appends the members between id and the system properties, each with a comma after it.
	members func(c *call, dst []byte, r *core.Resource) ([]byte, error)
	// tail appends the members after the system properties, each with a comma before it.
	tail func(c *call, dst []byte, r *core.Resource) ([]byte, error)
	// rid appends the raw resource id.
	rid func(dst []byte, o *owner, r *core.Resource) []byte
}

// owner is the parent of a resource: the database, for permissions a user, and for programs a container.
type owner struct {
	db   *core.Database
	user *core.Resource  // nil: none
	ct   *core.Container // nil: none
}

func (o *owner) num() uint32 {
	switch {
	case o.user != nil:
		return o.user.Num
	case o.ct != nil:
		return o.ct.Num()
	}
	return 0
}

// appendRID appends the text of the parent's own resource id.
func (o *owner) appendRID(dst []byte) []byte {
	switch {
	case o.user != nil:
		rid := o.user.RID()
		return wire.AppendRID(dst, rid[:])
	case o.ct != nil:
		rid := o.ct.RID()
		return wire.AppendRID(dst, rid[:])
	}
	rid := o.db.RID()
	return wire.AppendRID(dst, rid[:])
}

// owner returns the parent of the path's resource.
func (t *resourceType) owner(c *call) (o owner, err error) {
	if o.db, err = c.database(status.SubOwnerNotFound); err != nil {
		return o, err
	}
	if t.program {
		o.ct, err = c.parent()
		return o, err
	}
	if t.kind == core.Permission {
		o.user, err = users.find(c.Ctx(), c.s, &owner{db: o.db}, c.Param("user"))
		if status.Is(err, status.NotFound) {
			err = status.WithSub(status.NotFound, status.SubOwnerNotFound, msgNotFound)
		}
	}
	return o, err
}

// find returns a resource by id or by resource id.
func (t *resourceType) find(ctx context.Context, s *Server, o *owner, name string) (*core.Resource, error) {
	r, err := s.core.Within(ctx).Resource(o.db.ID, t.kind, o.num(), name)
	if err == nil || !status.Is(err, status.NotFound) {
		return r, err
	}
	if raw, ok := wire.RawRID(name); ok && len(raw) >= 8 {
		all, e := s.core.Resources(ctx, o.db.ID, t.kind, o.num())
		if e != nil {
			return nil, e
		}
		for _, r := range all {
			if string(t.rid(nil, o, r)) == string(raw) {
				return r, nil
			}
		}
	}
	return nil, errNotFound
}

// name returns the id of a resource of the type from the path.
func (t *resourceType) name(c *call) string { return c.Param(t.param) }

// append appends a resource as the service shows it.
func (t *resourceType) append(c *call, dst []byte, o *owner, r *core.Resource) ([]byte, error) {
	rid := ridText(t.rid(nil, o, r))
	db := o.db.RID()
	dst = append(dst, `{"id":`...)
	dst = cjson.AppendString(dst, r.ID)
	dst = append(dst, ',')
	dst, err := t.members(c, dst, r)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `"_rid":"`...)
	dst = append(dst, rid...)
	dst = append(dst, `","_self":"dbs/`...)
	dst = wire.AppendRID(dst, db[:])
	switch {
	case o.user != nil:
		dst = o.appendRID(append(dst, `/users/`...))
	case o.ct != nil:
		dst = o.appendRID(append(dst, `/colls/`...))
	}
	dst = append(dst, '/')
	dst = append(dst, t.segment...)
	dst = append(dst, '/')
	dst = append(dst, rid...)
	dst = append(dst, `/","_etag":`...)
	dst = appendQuotedETag(dst, core.ResourceETag(r))
	dst = append(dst, `,"_ts":`...)
	dst = strconv.AppendInt(dst, r.TS, 10)
	if dst, err = t.tail(c, dst, r); err != nil {
		return nil, err
	}
	return append(dst, '}'), nil
}

func (t *resourceType) rows(c *call) (*feedReply, error) {
	o, err := t.owner(c)
	if err != nil {
		return nil, err
	}
	all, err := c.s.core.Resources(c.Ctx(), o.db.ID, t.kind, o.num())
	if err != nil {
		return nil, err
	}
	return c.feed(string(o.appendRID(nil)), t.feed, rowsOf(all, func(r *core.Resource) (uint64,
		func() ([]byte, error)) {
		return uint64(r.Num), func() ([]byte, error) { return t.append(c, nil, &o, r) }
	})), nil
}

func (t *resourceType) list(c *call) error {
	f, err := t.rows(c)
	if err != nil {
		return err
	}
	return f.send(unlimited)
}

func (t *resourceType) query(c *call) error {
	f, err := t.rows(c)
	if err != nil {
		return err
	}
	return f.query()
}

// create creates a resource. If the type has upserts, the upsert header turns it into one.
func (t *resourceType) create(c *call) error {
	o, err := t.owner(c)
	if err != nil {
		return err
	}
	r, err := t.readBody(c, &o)
	if err != nil {
		return err
	}
	made, err := c.s.core.CreateResource(c.Ctx(), o.db.ID, r)
	if err == nil {
		return t.send(c, &o, made, http.StatusCreated)
	}
	if t.upserts && status.Is(err, status.Conflict) && isTrue(c.In, hIsUpsert) {
		made, e := c.s.core.ReplaceResource(c.Ctx(), o.db.ID, r.ID, r, c.resourceCheck())
		if e == nil {
			return t.send(c, &o, made, http.StatusOK)
		}
		if !status.Is(e, status.NotFound) { // not found: the conflict is about another property than the id
			return e
		}
	}
	return err
}

// readBody parses the resource in a request's body.
func (t *resourceType) readBody(c *call, o *owner) (r core.Resource, err error) {
	if err = c.ReadBody(maxBody); err != nil {
		return r, err
	}
	var body map[string]json.RawMessage
	if json.Unmarshal(c.Body, &body) != nil || body == nil {
		return r, status.New(status.BadRequest, "The request body is not a valid JSON object.")
	}
	raw, ok := body["id"]
	if !ok {
		return r, missing("id")
	}
	var id string
	if json.Unmarshal(raw, &id) != nil {
		return r, status.New(status.BadRequest, "The input content is invalid because the property 'id' is not a "+
			"string.")
	}
	if err = validName(id); err != nil {
		return r, err
	}
	if r, err = t.parse(c, body); err != nil {
		return r, err
	}
	r.Kind, r.Parent, r.ID, r.Most = t.kind, o.num(), id, t.most
	return r, nil
}

// resourceCheck returns the check of If-Match.
func (c *call) resourceCheck() func(*core.Resource) error {
	return func(old *core.Resource) error { return c.ifMatch(core.ResourceETag(old)) }
}

func (t *resourceType) send(c *call, o *owner, r *core.Resource, code int) error {
	out, err := t.append(c, c.Out[:0], o, r)
	if err != nil {
		return err
	}
	c.Out = out
	t.setHeaders(c, o, r)
	return c.send(code)
}

// setHeaders adds the etag and the headers that name the resource's parent.
func (t *resourceType) setHeaders(c *call, o *owner, r *core.Resource) {
	c.setETag(core.ResourceETag(r))
	if o.ct != nil {
		c.setContainer(o.ct)
		return
	}
	c.BeginLine(hAltContentPath)
	c.Lines = append(c.Lines, "dbs/"...)
	c.Lines = appendPathName(c.Lines, o.db.ID)
	if o.user != nil {
		c.Lines = append(c.Lines, "/users/"...)
		c.Lines = appendPathName(c.Lines, o.user.ID)
	}
	c.EndLine()
	c.BeginLine(hContentPath)
	c.Lines = o.appendRID(c.Lines)
	c.EndLine()
}

func (t *resourceType) read(c *call) error {
	o, err := t.owner(c)
	if err != nil {
		return err
	}
	r, err := t.find(c.Ctx(), c.s, &o, t.name(c))
	if err != nil {
		return err
	}
	if v := header(c.In, hIfNoneMatch); v != "" && etagListed(v, core.ResourceETag(r)) {
		t.setHeaders(c, &o, r)
		return errNotModified
	}
	return t.send(c, &o, r, http.StatusOK)
}

func (t *resourceType) replace(c *call) error {
	o, err := t.owner(c)
	if err != nil {
		return err
	}
	old, err := t.find(c.Ctx(), c.s, &o, t.name(c))
	if err != nil {
		return err
	}
	r, err := t.readBody(c, &o)
	if err != nil {
		return err
	}
	if r.ID != old.ID && !t.renames {
		return errInvalid
	}
	made, err := c.s.core.ReplaceResource(c.Ctx(), o.db.ID, old.ID, r, c.resourceCheck())
	if err != nil {
		return err
	}
	return t.send(c, &o, made, http.StatusOK)
}

func (t *resourceType) remove(c *call) error {
	o, err := t.owner(c)
	if err != nil {
		return err
	}
	r, err := t.find(c.Ctx(), c.s, &o, t.name(c))
	if err != nil {
		return err
	}
	if err := c.s.core.DropResource(c.Ctx(), o.db.ID, t.kind, o.num(), r.ID, c.resourceCheck()); err != nil {
		return err
	}
	return c.send(http.StatusNoContent)
}

// nothing is a members or tail function that appends nothing.
func nothing(_ *call, dst []byte, _ *core.Resource) ([]byte, error) { return dst, nil }

// users have an id and permissions, and no further members.
var users = &resourceType{
	kind: core.User, segment: "users", param: "user", feed: "Users", renames: true, upserts: true,
	parse:   func(*call, map[string]json.RawMessage) (core.Resource, error) { return core.Resource{}, nil },
	members: nothing,
	tail: func(_ *call, dst []byte, _ *core.Resource) ([]byte, error) {
		return append(dst, `,"_permissions":"permissions/"`...), nil
	},
	rid: func(dst []byte, _ *owner, r *core.Resource) []byte {
		b := r.RID()
		return append(dst, b[:]...)
	},
}

// ridClientKey is the byte that marks a client encryption key's resource id.
const ridClientKey = 0x02

// clientKeys are the keys of clients that use Always Encrypted. The server only stores and returns them.
var clientKeys = &resourceType{
	kind: core.ClientKey, segment: "clientencryptionkeys", param: "key", feed: "ClientEncryptionKeys",
	parse: parseClientKey,
	members: func(_ *call, dst []byte, r *core.Resource) ([]byte, error) {
		dst = append(dst, r.Body[1:len(r.Body)-1]...)
		return append(dst, ','), nil
	},
	tail: nothing,
	rid: func(dst []byte, _ *owner, r *core.Resource) []byte {
		b := r.RID()
		return append(append(dst, b[:]...), ridClientKey)
	},
}

// parseClientKey checks the members of a client encryption key and stores them as sent.
func parseClientKey(_ *call, body map[string]json.RawMessage) (r core.Resource, err error) {
	var k struct {
		Algorithm *string         `json:"encryptionAlgorithm"`
		Wrapped   *string         `json:"wrappedDataEncryptionKey"`
		Metadata  json.RawMessage `json:"keyWrapMetadata"`
	}
	for name, to := range map[string]any{"encryptionAlgorithm": &k.Algorithm, "wrappedDataEncryptionKey": &k.Wrapped,
		"keyWrapMetadata": &k.Metadata} {
		raw, ok := body[name]
		if !ok {
			return r, missing(name)
		}
		if json.Unmarshal(raw, to) != nil {
			return r, status.New(status.BadRequest, "The member %s of the client encryption key is malformed.", name)
		}
	}
	if k.Algorithm == nil || k.Wrapped == nil {
		return r, status.New(status.BadRequest, "A client encryption key needs encryptionAlgorithm and "+
			"wrappedDataEncryptionKey.")
	}
	var meta map[string]any
	if json.Unmarshal(k.Metadata, &meta) != nil || meta == nil {
		return r, status.New(status.BadRequest, "The member keyWrapMetadata of the client encryption key is not an "+
			"object.")
	}
	k.Metadata = compact(k.Metadata)
	r.Body, err = marshal(k)
	return r, err
}

// appendResourceChild appends the raw resource id of a child: the 8 bytes of its parent, then its own number.
func appendResourceChild(dst []byte, parent, r *core.Resource) []byte {
	p := parent.RID()
	return binary.LittleEndian.AppendUint64(append(dst, p[:]...), uint64(r.Num))
}
