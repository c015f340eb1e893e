// Package odata reads the OData texts of the Table API: resource addresses, $select and $filter. All its functions take
// decoded text and depend neither on HTTP nor on the store.
package odata

import (
	"strings"

	"github.com/orrerydb/orrery/tableapi/edm"
)

// Kind is the kind of resource that an address names.
type Kind uint8

// The kinds of resource.
const (
	Service   Kind = iota // the account itself: "/"
	Tables                // "Tables", "Tables()"
	OneTable              // "Tables('name')"
	Entities              // "name", "name()"
	OneEntity             // "name(PartitionKey='p',RowKey='r')"
	Batch                 // "$batch"
)

// Address is a parsed resource address.
type Address struct {
	Kind                 Kind
	Table                string // OneTable, Entities, OneEntity
	PartitionKey, RowKey string // OneEntity
}

// Error is the error for a text that can't be read: status 400, or 501 if NotImplemented is set. Msg is safe to show.
type Error struct {
	Msg            string
	NotImplemented bool
}

// Error implements error.
func (e *Error) Error() string { return e.Msg }

func bad(msg string) *Error { return &Error{Msg: msg} }

// ParseAddress reads one decoded path segment. The keys may come in either order. A quote inside a key should be
// doubled. One client (aztables) doesn't double it in batches, so a single quote that can't end the key is part of the
// key.
//
//	people(PartitionKey='a''b',RowKey='1')  ->  OneEntity, keys "a'b" and "1"
//	people(PartitionKey='a'b',RowKey='1')   ->  the same: after the second quote neither the end nor a key follows
func ParseAddress(seg string) (Address, error) {
	switch seg {
	case "":
		return Address{Kind: Service}, nil
	case "$batch":
		return Address{Kind: Batch}, nil
	}
	name, args, hasArgs := strings.Cut(seg, "(")
	if name == "" || strings.ContainsAny(name, "')/") {
		return Address{}, bad("The requested URI does not represent any resource on the server.")
	}
	if hasArgs {
		var ok bool
		if args, ok = strings.CutSuffix(args, ")"); !ok {
			return Address{}, bad("Bad Request - Error in query syntax.")
		}
	}
	args = strings.TrimSpace(args)
	if name == "Tables" {
		if args == "" {
			return Address{Kind: Tables}, nil
		}
		if v, ok := strings.CutPrefix(args, "TableName="); ok {
			args = v
		}
		table, rest, ok := quoted(args)
		if !ok || rest != "" {
			return Address{}, bad("Bad Request - Error in query syntax.")
		}
		return Address{Kind: OneTable, Table: table}, nil
	}
	if args == "" {
		return Address{Kind: Entities, Table: name}, nil
	}
	a := Address{Kind: OneEntity, Table: name}
	if !a.keys(args) {
		return Address{}, bad("Bad Request - Error in query syntax.")
	}
	return a, nil
}

// keys reads `PartitionKey='p',RowKey='r'` or the reverse.
func (a *Address) keys(s string) bool {
	var havePK, haveRK bool
	for {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return false
		}
		text, rest, ok := quoted(strings.TrimLeft(rest, " "))
		if !ok {
			return false
		}
		switch strings.TrimSpace(name) {
		case edm.PartitionKey:
			if havePK {
				return false
			}
			a.PartitionKey, havePK = text, true
		case edm.RowKey:
			if haveRK {
				return false
			}
			a.RowKey, haveRK = text, true
		default:
			return false
		}
		if rest == "" {
			return havePK && haveRK
		}
		if s, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), ","); !ok {
			return false
		}
	}
}

// quoted reads a quoted text from the front of s.
func quoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '\'' {
		return "", "", false
	}
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			continue
		}
		if after := s[i+1:]; ends(after) {
			return strings.ReplaceAll(s[1:i], "''", "'"), after, true
		}
		if i+1 < len(s) && s[i+1] == '\'' {
			i++
		}
	}
	return "", "", false
}

// ends reports whether the text after a quote shows that the quote ended its key.
func ends(after string) bool {
	after = strings.TrimLeft(after, " ")
	if after == "" {
		return true
	}
	if after[0] != ',' {
		return false
	}
	after = strings.TrimLeft(after[1:], " ")
	return strings.HasPrefix(after, edm.PartitionKey+"='") || strings.HasPrefix(after, edm.RowKey+"='") ||
		strings.HasPrefix(after, edm.PartitionKey+" =") || strings.HasPrefix(after, edm.RowKey+" =")
}

// ParseSelect reads $select: nil for all properties ("" or "*"), else the names.
func ParseSelect(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	names := strings.Split(s, ",")
	for i := range names {
		if names[i] = strings.TrimSpace(names[i]); names[i] == "*" {
			return nil
		}
	}
	return names
}
