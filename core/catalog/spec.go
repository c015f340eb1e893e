// Package catalog holds accounts, databases and containers with their policies, throughput and partition map, as data.
// It knows names and definitions, not items.
//
// Invariants:
//
//  1. What a reader gets (*Database, *Container) never changes. A change makes a new one and replaces the whole state,
//     which shares all but a few nodes with the one before.
//  2. A change is durable in the engine before it is visible. One commit holds all of it.
//  3. A generation is never used for a second container.
//  4. For a container that is not in use the catalog holds its name and numbers in memory. Its definition is read on
//     first use.
//  5. The time of a look-up or a change grows with the number of containers only as the depth of a B-tree does.
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

// Throughput is the provisioned throughput in request units per second. Both zero: it has none itself.
type Throughput struct {
	Manual       int `json:"manual,omitempty"`
	AutoscaleMax int `json:"autoscaleMax,omitempty"`
	// AutoscaleIncrement is the percentage by which the maximum would grow automatically. It is kept and shown, but has
	// no effect.
	AutoscaleIncrement int `json:"autoscaleIncrement,omitempty"`
	// AutoscalePolicy says that the increment was given, maybe as 0. Then it is shown.
	AutoscalePolicy bool `json:"autoscalePolicy,omitempty"`
	// Highest is the largest Max that it ever had, if that is larger than the present one. The catalog keeps it.
	Highest int `json:"highest,omitempty"`
}

// Max returns the largest number of request units per second that it allows.
func (t Throughput) Max() int { return max(t.Manual, t.AutoscaleMax) }

// Ever returns the largest number of request units per second that it ever allowed.
func (t Throughput) Ever() int { return max(t.Highest, t.Max()) }

// after returns the throughput as it is stored in place of old.
func (t Throughput) after(old Throughput) Throughput {
	if t.Highest = old.Ever(); t.Highest <= t.Max() {
		t.Highest = 0
	}
	return t
}

// PartitionKeyDef is a container's partition key definition. Paths are NoSQL paths ("/tenant", "/a/b", "/\"odd
// name\"").
type PartitionKeyDef struct {
	Paths     []string `json:"paths"`
	Kind      string   `json:"kind"`                // Hash or MultiHash
	Version   int      `json:"version"`             // 1 or 2
	Versioned bool     `json:"versioned,omitempty"` // version 1 was given, so it is shown
	SystemKey bool     `json:"systemKey,omitempty"`

	// Scalar says that an array or object at a path counts as a missing value, as in the service. Definitions of
	// before this field lack it, and so do those of MongoDB, whose shard keys may be documents.
	Scalar bool `json:"scalar,omitempty"`
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

// Spec is the definition of a container. An API writes it and reads it back.
type Spec struct {
	ID             string            `json:"id"`
	PartitionKey   PartitionKeyDef   `json:"partitionKey"`
	IndexingPolicy []byte            `json:"indexingPolicy,omitempty"` // JSON, as the NoSQL API takes it; nil = the default
	DefaultTTL     *int32            `json:"defaultTtl,omitempty"`     // seconds; -1 = on, items decide
	UniqueKeys     [][]string        `json:"uniqueKeys,omitempty"`     // NoSQL paths
	Throughput     Throughput        `json:"throughput,omitzero"`
	Properties     map[string][]byte `json:"properties,omitempty"` // data that an API keeps with the container
	Origin         string            `json:"origin,omitempty"`     // nosql, mongo, gremlin or table
	ExtendedJSON   bool              `json:"extendedJson,omitempty"`

	// Declared are the declared indexes that the store enforces. Only ChangeSpec and CreateContainer set them.
	Declared []Declared `json:"declared,omitempty"`

	// LogMinutes is for how many minutes the log keeps each version of an item and each deletion; 0 = there is no log.
	LogMinutes int64 `json:"logMinutes,omitempty"`

	// Capped has the limits of a container that keeps only its newest items; nil: it keeps all.
	Capped *Capped `json:"capped,omitempty"`

	// Images says that the journal keeps the previous version of each item that is replaced or deleted.
	Images bool `json:"images,omitempty"`

	// Event is what the journal says about the creation or the change of the container: BSON that an API reads. It
	// isn't stored with the container. nil: a creation has a general one, a change has none.
	Event []byte `json:"-"`

	// FoldID says that the id must differ by more than case: no other container of the database may have an id that
	// differs from this one only in case. It is set at creation and never changes.
	FoldID bool `json:"foldId,omitempty"`
}

// Capped are the limits of a container that keeps only its newest items.
type Capped struct {
	Bytes int64 `json:"bytes"`           // of the documents
	Items int64 `json:"items,omitempty"` // 0: any number
}

// Clone returns a deep copy.
func (s Spec) Clone() Spec {
	if s.Capped != nil {
		c := *s.Capped
		s.Capped = &c
	}
	s.PartitionKey.Paths = slices.Clone(s.PartitionKey.Paths)
	s.IndexingPolicy = bytes.Clone(s.IndexingPolicy)
	if s.DefaultTTL != nil {
		t := *s.DefaultTTL
		s.DefaultTTL = &t
	}
	s.UniqueKeys = slices.Clone(s.UniqueKeys)
	s.Declared = slices.Clone(s.Declared)
	for i := range s.Declared {
		s.Declared[i] = s.Declared[i].clone()
	}
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
	Num        uint32     `json:"num"` // its rid as a number; never reused
	Version    uint64     `json:"version"`
	TS         int64      `json:"ts"` // seconds
	Throughput Throughput `json:"throughput,omitzero"`
}

// RID returns the 4 bytes of the database's _rid.
func (d *Database) RID() [4]byte { return ridBytes(d.Num) }

// Container is a container as the catalog has it.
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
	// Former are the earlier indexing policies that index entries may still follow, oldest first. It is empty when no
	// rebuild is in progress.
	Former   []FormerPolicy `json:"former,omitempty"`
	keyPaths [][]string
}

// FormerPolicy is an earlier indexing policy with its version.
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

// verify checks what other code relies on in an entry that was read.
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

// ridOf returns the 8 bytes of the _rid of something in a database.
func ridOf(db, num uint32) (r [8]byte) {
	binary.BigEndian.PutUint32(r[:4], db)
	binary.BigEndian.PutUint32(r[4:], num)
	return r
}

// ridNumber reads 4 bytes of a _rid.
func ridNumber(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// ParsePath splits a NoSQL path into its stored segments: /a/"b c"/'d' -> a, b c, d. The caller has removed a trailing
// /? or /*. The first segment id stands for the identity (stored as _id).
func ParsePath(path string) ([]string, error) {
	if path == "" || path[0] != '/' {
		return nil, status.New(status.BadRequest, "The path %q must begin with '/'.", path)
	}
	var segs []string
	for rest := path[1:]; ; {
		var seg string
		if strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "'") {
			end := strings.IndexByte(rest[1:], rest[0])
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
