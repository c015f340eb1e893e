package edm

import (
	"unicode"
	"unicode/utf8"
)

// Names of an entity's system properties.
const (
	PartitionKey = "PartitionKey"
	RowKey       = "RowKey"
	Timestamp    = "Timestamp"
)

// PartitionField is the stored field with the PartitionKey in a container of the Table API. Its path is "/$pk".
const PartitionField = "$pk"

// idAlias is the stored name of a user's property `_id`, because the stored field `_id` is the item's identity
// (doc.Names).
const idAlias = "\x01_id"

// reserved are the system fields that the NoSQL view of the same item adds. Properties with these names couldn't be
// distinguished from them.
var reserved = []string{"_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"}

// StoredName returns the name of the field in which a property is stored.
func StoredName(prop string) string {
	if prop == "_id" {
		return idAlias
	}
	return prop
}

// checkName applies the service's rules to a property name: at most 255 characters, a C# identifier.
func checkName(name []byte) error {
	for _, r := range reserved {
		if string(name) == r {
			return fail(PropertyNameInvalid, r, "The property name is invalid.")
		}
	}
	units := 0
	for i, s := 0, name; len(s) > 0; i++ {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		if r < utf8.RuneSelf {
			letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			if !letter && (i == 0 || r < '0' || r > '9') {
				return fail(PropertyNameInvalid, string(name), "The property name is invalid.")
			}
		} else if !unicode.IsLetter(r) && !unicode.Is(unicode.Nl, r) && (i == 0 || !identifierPart(r)) {
			return fail(PropertyNameInvalid, string(name), "The property name is invalid.")
		}
		if units++; r > 0xFFFF {
			units++
		}
	}
	if units == 0 {
		return fail(PropertyNameInvalid, "", "The property name is invalid.")
	}
	if units > maxNameUnits {
		return fail(PropertyNameTooLong, "", "The property name exceeds the maximum allowed length (255).")
	}
	return nil
}

func identifierPart(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Cf)
}

// Limits of the service (Understanding the Table service data model).
const (
	// MaxProperties is the largest number of properties of an entity, not counting PartitionKey, RowKey and Timestamp.
	MaxProperties = 252

	maxNameUnits = 255
	maxString    = 32 * 1024
	maxBinary    = 64 * 1024
	maxKeyUnits  = 512 // UTF-16 units: 1 KiB
	// maxMembers limits the members of an entity's JSON, annotations of absent properties included.
	maxMembers = 1024
)

// CheckKey applies the service's rules to PartitionKey or RowKey (name says which).
func CheckKey(name, key string) error {
	units := 0
	if !utf8.ValidString(key) {
		return fail(OutOfRangeInput, name, "The '"+name+"' parameter is out of range: it is not text.")
	}
	for _, r := range key {
		if r == '/' || r == '\\' || r == '#' || r == '?' || r < 0x20 || r >= 0x7F && r <= 0x9F {
			return fail(OutOfRangeInput, name, "The '"+name+"' parameter of value '"+key+"' is out of range.")
		}
		if units++; r > 0xFFFF {
			units++
		}
	}
	if units > maxKeyUnits {
		return fail(KeyValueTooLarge, name, "The key value exceeds the maximum allowed size (1KB).")
	}
	return nil
}

// utf16Units counts the UTF-16 units of valid UTF-8 text.
func utf16Units(b []byte) int {
	n := 0
	for _, c := range b {
		switch {
		case c < 0x80, c >= 0xC0 && c < 0xF0:
			n++
		case c >= 0xF0:
			n += 2
		}
	}
	return n
}
