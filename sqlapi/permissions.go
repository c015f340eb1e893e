package sqlapi

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/sqlapi/wire"

	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// maxTokenKey bounds the partition key of a permission, so that its token fits into a header.
const maxTokenKey = 8 << 10

// permissions grant the bearer of their token access to a resource. A user has at most one permission for a resource.
var permissions = &resourceType{
	kind: core.Permission, segment: "permissions", param: "permission", feed: "Permissions", renames: true,
	upserts: true, parse: parsePermission,
	members: permissionMembers,
	tail:    permissionToken,
	rid:     func(dst []byte, o *owner, r *core.Resource) []byte { return appendResourceChild(dst, o.user, r) },
}

// permission is the body of a permission in the catalog.
type permission struct {
	Mode     string          `json:"mode"`     // Read or All, in the case that the client wrote
	Resource string          `json:"resource"` // link as the client sent it
	Key      json.RawMessage `json:"key,omitempty"`

	Coll  [8]byte `json:"coll"`            // container of the link
	Child string  `json:"child,omitempty"` // "docs/id"; "": the container
	Bound string  `json:"bound,omitempty"` // partition key that tokens are bound to, in the header's form
}

// parsePermission checks a permission and finds its resource.
func parsePermission(c *call, body map[string]json.RawMessage) (r core.Resource, err error) {
	if _, err := c.tokenLife(); err != nil {
		return r, err
	}
	var p permission
	for name, to := range map[string]*string{"permissionMode": &p.Mode, "resource": &p.Resource} {
		raw, ok := body[name]
		if !ok {
			return r, missing(name)
		}
		if json.Unmarshal(raw, to) != nil {
			return r, status.New(status.BadRequest, "The member %s of the permission is not a string.", name)
		}
	}
	if !strings.EqualFold(p.Mode, "Read") && !strings.EqualFold(p.Mode, "All") {
		return r, status.New(status.BadRequest, "The permissionMode %s is invalid: it must be Read or All.",
			strconv.QuoteToASCII(clip(p.Mode)))
	}
	if raw := body["resourcePartitionKey"]; len(raw) > 0 && string(raw) != "null" {
		p.Key = compact(raw)
	}
	if err := c.permissionTarget(&p); err != nil {
		return r, err
	}
	r.Claim = ridText(p.Coll[:]) + "/" + p.Child
	r.Body, err = json.Marshal(p)
	return r, err
}

// permissionTarget finds the resource of a permission and its partition key.
func (c *call) permissionTarget(p *permission) error {
	bad := status.New(status.BadRequest, "The resource %s of the permission is no link of a container or of "+
		"something in one.", strconv.QuoteToASCII(clip(p.Resource)))
	link, ok := parseLink(p.Resource)
	if !ok || len(link) != 4 && len(link) != 6 || link[0] != "dbs" || link[2] != "colls" {
		return bad
	}
	ct, err := c.s.container(c.Ctx(), link[1], link[3], 0)
	gone, _ := isGone(err, link[3], 8)
	if _, ok := wire.ParseRID(link[1], 4); ok && gone {
		return p.aimAtNothing(link, bad)
	}
	if err != nil {
		return err
	}
	if db, err := c.database(status.SubOwnerNotFound); err != nil {
		return err
	} else if ct.Database() != db.ID {
		return status.New(status.BadRequest, "The resource of a permission must be in the user's database.")
	}
	p.Coll = ct.RID()
	if p.Bound, err = boundKey(len(ct.Spec().PartitionKey.Paths), p.Key); err != nil {
		return err
	}
	if len(link) == 4 {
		return nil
	}
	if !inContainer(link[4]) {
		return bad
	}
	id := link[5]
	if coll, number, ok := wire.ParseItemRID(id); ok && link[4] == "docs" && coll == p.Coll && link[3] != ct.ID() {
		// A resource id names a single item. An item's name exists once per partition, so the token is bound to the
		// partition of this item.
		pk, v, err := c.keyByNumber(ct, number)
		if err != nil {
			return err
		}
		id = core.IdentityText(v)
		if p.Bound == "" {
			p.Bound = string(appendKey(nil, pk))
		}
	}
	p.Child = link[4] + "/" + id
	if len(p.Child) > maxID+16 {
		return bad
	}
	return nil
}

// aimAtNothing is permissionTarget for the resource ids of a container that doesn't exist. The service looks only names
// up: it takes such a permission, which opens nothing.
func (p *permission) aimAtNothing(link []string, bad error) (err error) {
	coll, _ := wire.ParseRID(link[3], 8)
	p.Coll = [8]byte(coll)
	if len(link) == 6 {
		if !inContainer(link[4]) {
			return bad
		}
		if p.Child = link[4] + "/" + link[5]; len(p.Child) > maxID+16 {
			return bad
		}
	}
	p.Bound, err = boundKey(maxKeyPaths, p.Key)
	return err
}

// inContainer reports whether a permission may be for the resources of a container that this segment has.
func inContainer(segment string) bool {
	switch segment {
	case "docs", "sprocs", "triggers", "udfs", "conflicts":
		return true
	}
	return false
}

// parseLink splits a link into segments. Its names may be percent-encoded.
func parseLink(link string) ([]string, bool) {
	u := &url.URL{Path: "/" + link}
	if strings.IndexByte(link, '%') >= 0 {
		if _, err := url.PathUnescape(link); err == nil {
			u.RawPath = u.Path
		}
	}
	return segments(u)
}

// boundKey returns the partition key of a permission in the header's form, "" when there is none. A single value counts
// as an array with that value.
func boundKey(paths int, raw json.RawMessage) (string, error) {
	if len(raw) == 0 {
		return "", nil
	}
	text := string(raw)
	if raw[0] != '[' {
		text = "[" + text + "]"
	}
	var room [maxKeyPaths]value.Value
	pk, err := parsePartitionKey(room[:0], text)
	if err != nil {
		return "", err
	}
	if len(pk) == 0 || len(pk) > paths || len(text) > maxTokenKey {
		return "", status.New(status.BadRequest, "The resourcePartitionKey %s does not fit the container.", clip(text))
	}
	return text, nil
}

// appendKey appends a partition key in the header's form.
func appendKey(dst []byte, pk core.PartitionKey) []byte {
	dst = append(dst, '[')
	for i, v := range pk {
		if i > 0 {
			dst = append(dst, ',')
		}
		if v.IsDefined() {
			dst = doc.AppendJSON(dst, v)
		} else {
			dst = append(dst, "{}"...)
		}
	}
	return append(dst, ']')
}

func permissionMembers(_ *call, dst []byte, r *core.Resource) ([]byte, error) {
	var p permission
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return nil, status.Wrap(status.Corruption, err, "A stored permission is malformed.")
	}
	dst = append(dst, `"permissionMode":`...)
	dst = cjson.AppendString(dst, p.Mode)
	dst = append(dst, `,"resource":`...)
	dst = cjson.AppendString(dst, p.Resource)
	if len(p.Key) > 0 {
		dst = append(dst, `,"resourcePartitionKey":`...)
		dst = append(dst, p.Key...)
	}
	return append(dst, ','), nil
}

// permissionToken appends a new token. Each reply that shows a permission contains one.
func permissionToken(c *call, dst []byte, r *core.Resource) ([]byte, error) {
	life, err := c.tokenLife()
	if err != nil {
		return nil, err
	}
	var p permission
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return nil, status.Wrap(status.Corruption, err, "A stored permission is malformed.")
	}
	g := wire.Grant{All: strings.EqualFold(p.Mode, "All"), Expiry: c.s.wall.Now().Unix() + life, Coll: p.Coll,
		Child: p.Child, Key: p.Bound}
	nonce := c.s.clock.UUID()
	dst = append(dst, `,"_token":`...)
	return cjson.AppendString(dst, c.s.sign.Seal(&g, [8]byte(nonce[:8]))), nil
}

// tokenLife returns the lifetime of this reply's tokens in seconds.
func (c *call) tokenLife() (int64, error) {
	v := header(c.In, hTokenExpiry)
	if v == "" {
		return wire.DefaultTokenLife, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < wire.MinTokenLife || n > wire.MaxTokenLife {
		return 0, badHeader("x-ms-documentdb-expiry-seconds", v)
	}
	return n, nil
}
