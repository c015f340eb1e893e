package sqlapi

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/orrerydb/orrery/core"
)

// Resource ids are base64 with '/' written as '-': a database has 4 bytes, a container its
// database's 4 and 4 more, a child of a container those 8 and 8 more whose last nibble-pair names the type.
var ridCoding = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-").Strict()

// Types of the children of a container: the high nibble of the last byte.
const (
	ridItem  = 0x0
	ridRange = 0x5
)

const (
	databaseRIDLen  = 8  // text of 4 bytes
	containerRIDLen = 12 // text of 8 bytes
	itemRIDLen      = 24 // text of 16 bytes
)

// appendRID appends the text of a raw resource id.
func appendRID(dst, raw []byte) []byte { return ridCoding.AppendEncode(dst, raw) }

// appendChildRID appends the text of a child of a container: an item by its number, a range by its id.
func appendChildRID(dst []byte, coll [8]byte, number uint64, kind byte) []byte {
	var raw [16]byte
	copy(raw[:], coll[:])
	binary.LittleEndian.PutUint64(raw[8:], number)
	raw[15] = raw[15]&0x0F | kind<<4
	return ridCoding.AppendEncode(dst, raw[:])
}

// parseRID decodes a resource id of exactly n bytes.
func parseRID(text string, n int) (raw []byte, ok bool) {
	if len(text) != ridCoding.EncodedLen(n) {
		return nil, false
	}
	raw, err := ridCoding.DecodeString(text)
	return raw, err == nil && len(raw) == n
}

// parseItemRID decodes an item's resource id.
func parseItemRID(text string) (coll [8]byte, number uint64, ok bool) {
	raw, ok := parseRID(text, 16)
	if !ok || raw[15]>>4 != ridItem {
		return coll, 0, false
	}
	copy(coll[:], raw)
	return coll, binary.LittleEndian.Uint64(raw[8:]), true
}

// namedByRIDs reports whether every id of a link is a resource id by which the server finds something: what is there
// under such a name is taken by its name.
func (s *Server) namedByRIDs(segs []string) bool {
	if len(segs) == 2 && segs[0] == "offers" { // have no names
		_, ok := parseRID(segs[1], 3)
		return ok
	}
	if len(segs) < 2 || segs[0] != "dbs" {
		return false
	}
	d, err := s.database(segs[1], 0)
	if err != nil || d.ID == segs[1] {
		return false
	}
	if len(segs) == 2 {
		return true
	}
	switch segs[2] {
	case "colls":
		return s.childByRIDs(d, segs[3:])
	case "users":
		return s.resourceByRIDs(users, &owner{db: d}, segs[3:])
	case "clientencryptionkeys":
		return s.resourceByRIDs(clientKeys, &owner{db: d}, segs[3:])
	}
	return false
}

// childByRIDs is namedByRIDs for a container, and what is in it.
func (s *Server) childByRIDs(d *core.Database, segs []string) bool {
	ct, err := s.container(d.ID, segs[0], 0)
	if err != nil || ct.ID() == segs[0] {
		return false
	}
	if len(segs) == 1 {
		return true
	}
	raw, ok := parseRID(segs[2], 16)
	if !ok || [8]byte(raw) != ct.RID() || len(segs) != 3 {
		return false
	}
	_, _, isItem := parseItemRID(segs[2])
	return isItem || segs[1] != "docs"
}

// resourceByRIDs is namedByRIDs for a resource of a database, and the permissions of a user.
func (s *Server) resourceByRIDs(t *resourceType, o *owner, segs []string) bool {
	r, err := t.find(s, o, segs[0])
	if err != nil || r.ID == segs[0] {
		return false
	}
	if t == users && len(segs) == 3 && segs[1] == "permissions" {
		return s.resourceByRIDs(permissions, &owner{o.db, r}, segs[2:])
	}
	return len(segs) == 1
}
