// Package catalog holds accounts, databases and containers with their policies, throughput and partition map, as data:
// it knows names and definitions, not items.
//
// Invariants:
//  1. What a reader gets (*Database, *Container) never changes; a change makes a new one and swaps the whole state,
//     which shares all but a few nodes with the one before.
//  2. A change is in the engine, durable, before it is visible. A commit holds all of it.
//  3. A generation belongs to one container for good.
//  4. Of a container that nobody uses the catalog holds its name and numbers. Its definition is read when it is asked
//     for.
//  5. Neither a look-up nor a change takes longer with more containers, but for the depth of a B-tree.
//  6. A slot's id stands for the same placements in every version of its container's map: see SlotMap.
package catalog

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
)

// Throughput is what was provisioned, in request units per second. Both zero: none of its own.
type Throughput struct {
	Manual       int `json:"manual,omitempty"`
	AutoscaleMax int `json:"autoscaleMax,omitempty"`
	// AutoscaleIncrement is by how many percent the maximum is to grow by itself; kept and shown, nothing grows here.
	AutoscaleIncrement int `json:"autoscaleIncrement,omitempty"`
}

// Max returns the most request units a second that it allows.
func (t Throughput) Max() int { return max(t.Manual, t.AutoscaleMax) }

// PartitionKeyDef is a container's partition key definition. Paths are NoSQL paths ("/tenant", "/a/b", "/\"odd
// name\"").
type PartitionKeyDef struct {
	Paths     []string `json:"paths"`
	Kind      string   `json:"kind"`    // Hash or MultiHash
	Version   int      `json:"version"` // 1 or 2
	SystemKey bool     `json:"systemKey,omitempty"`
}

// EPKKind returns how the key is hashed.
func (d PartitionKeyDef) EPKKind() epk.Kind {
	switch {
	case d.Kind == "MultiHash":
		return epk.MultiHash
	case d.Version == 1:
		return epk.V1
	}
	return epk.V2
}

// Spec is what a container is made of; an API fills it and gets it back.
type Spec struct {
	ID             string            `json:"id"`
	PartitionKey   PartitionKeyDef   `json:"partitionKey"`
	IndexingPolicy []byte            `json:"indexingPolicy,omitempty"` // JSON, as the NoSQL API takes it; nil = the default
	DefaultTTL     *int32            `json:"defaultTtl,omitempty"`     // seconds; -1 = on, items decide
	UniqueKeys     [][]string        `json:"uniqueKeys,omitempty"`     // NoSQL paths
	Throughput     Throughput        `json:"throughput,omitzero"`
	Properties     map[string][]byte `json:"properties,omitempty"` // what an API keeps with the container
	Origin         string            `json:"origin,omitempty"`     // nosql, mongo, gremlin or table
	ExtendedJSON   bool              `json:"extendedJson,omitempty"`

	// FoldID keeps ids apart by more than case: no other container of the database may have an id that differs from
	// this one's only in case. It stays as it was when the container was created.
	FoldID bool `json:"foldId,omitempty"`
}

// Clone returns a deep copy.
func (s Spec) Clone() Spec {
	s.PartitionKey.Paths = slices.Clone(s.PartitionKey.Paths)
	s.IndexingPolicy = bytes.Clone(s.IndexingPolicy)
	if s.DefaultTTL != nil {
		t := *s.DefaultTTL
		s.DefaultTTL = &t
	}
	s.UniqueKeys = slices.Clone(s.UniqueKeys)
	props := make(map[string][]byte, len(s.Properties))
	for k, v := range s.Properties {
		props[k] = bytes.Clone(v)
	}
	s.Properties = props
	return s
}

// Database is a named set of containers.
type Database struct {
	ID         string     `json:"id"`
	Num        uint32     `json:"num"` // its rid, as a number; never used again
	Version    uint64     `json:"version"`
	TS         int64      `json:"ts"` // seconds
	Throughput Throughput `json:"throughput,omitzero"`
}

// RID returns the 4 bytes of the database's _rid.
func (d *Database) RID() [4]byte { return ridBytes(d.Num) }

// Container is a container as it stands in the catalog.
type Container struct {
	Spec
	Database string `json:"-"`
	DBNum    uint32 `json:"db"`
	Num      uint32 `json:"num"` // its part of the _rid, top bit set
	Gen      uint32 `json:"gen"`
	Version  uint64 `json:"version2"`
	TS       int64  `json:"ts"`
	*SlotMap
	IndexVersion uint32 `json:"indexVersion"` // goes up with every change of the indexing policy
	// Former are the indexing policies before the present one that index entries may still follow, oldest first: none
	// when no rebuild is under way.
	Former   []FormerPolicy `json:"former,omitempty"`
	keyPaths [][]string
}

// FormerPolicy is an indexing policy of the past with its version.
type FormerPolicy struct {
	Version uint32 `json:"version"`
	Policy  []byte `json:"policy,omitempty"`
}

// KeyPaths returns the stored segments of each path of the partition key.
func (c *Container) KeyPaths() [][]string { return c.keyPaths }

// KeyIsID reports whether the partition key is the id: then a logical partition is one item.
func (c *Container) KeyIsID() bool {
	return len(c.keyPaths) == 1 && len(c.keyPaths[0]) == 1 && c.keyPaths[0][0] == "_id"
}

// prepare computes what is derived from the definition.
func (c *Container) prepare() error {
	if c.SlotMap != nil && c.MapVersion == 0 {
		c.MapVersion = firstMap
	}
	c.keyPaths = nil
	for _, p := range c.PartitionKey.Paths {
		segs, err := ParsePath(p)
		if err != nil {
			return err
		}
		c.keyPaths = append(c.keyPaths, segs)
	}
	return nil
}

// verify checks what everybody relies on in an entry that was read.
func (c *Container) verify() error {
	bad := c.SlotMap.verify()
	if len(c.keyPaths) == 0 {
		bad = "no partition key"
	}
	if bad != "" {
		return status.New(status.Corruption, "catalog entry of container %q has %s", c.ID, bad)
	}
	return nil
}

// RID returns the 8 bytes of the container's _rid: the database's 4 and its own 4.
func (c *Container) RID() [8]byte { return ridOf(c.DBNum, c.Num) }

// SlotKeys gives the names of the container's slots in the key space, each with the number of its physical partition.
func (c *Container) SlotKeys() iter.Seq2[keys.Slot, int] {
	return func(yield func(keys.Slot, int) bool) {
		for p := range c.Partitions {
			from, to := c.Run(p)
			for i := from; i < to; i++ {
				if !yield(keys.Slot{Gen: c.Gen, ID: c.Slots[i].ID}, p) {
					return
				}
			}
		}
	}
}

func ridBytes(n uint32) [4]byte { return [4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }

// ridOf returns the 8 bytes of what belongs to a database.
func ridOf(db, num uint32) (r [8]byte) {
	binary.BigEndian.PutUint32(r[:4], db)
	binary.BigEndian.PutUint32(r[4:], num)
	return r
}

// ridNumber reads 4 bytes of a _rid.
func ridNumber(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// ParsePath takes a NoSQL path apart into its stored segments: /a/"b c"/d -> a, b c, d. A trailing /? or /* must be cut
// off before. The first segment id names the identity (stored _id).
func ParsePath(path string) ([]string, error) {
	if path == "" || path[0] != '/' {
		return nil, status.New(status.BadRequest, "The path %q must begin with '/'.", path)
	}
	var segs []string
	for rest := path[1:]; ; {
		var seg string
		if strings.HasPrefix(rest, `"`) {
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				return nil, status.New(status.BadRequest, "The path %q has an unclosed quote.", path)
			}
			seg, rest = rest[1:end+1], rest[end+2:]
			if rest != "" && rest[0] != '/' {
				return nil, status.New(status.BadRequest, "The path %q is malformed.", path)
			}
		} else {
			end := strings.IndexByte(rest, '/')
			if end < 0 {
				end = len(rest)
			}
			seg, rest = rest[:end], rest[end:]
		}
		if seg == "" {
			return nil, status.New(status.BadRequest, "The path %q has an empty segment.", path)
		}
		segs = append(segs, seg)
		if rest == "" {
			break
		}
		rest = rest[1:]
	}
	switch segs[0] {
	case "id":
		segs[0] = "_id"
	case "_id":
		segs[0] = "\x01_id"
	}
	return segs, nil
}
