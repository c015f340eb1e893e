package catalog

import (
	"encoding/binary"
	"encoding/json"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
)

// Values of the first byte of an entry.
const (
	// formatCatalog is followed by the entry's JSON.
	formatCatalog = 1
	// formatContainer, only of containers, is followed by the front and then by the JSON. The front is the part that
	// the catalog keeps in memory for each container. So a store is opened without reading definitions.
	formatContainer = 2
)

// ref is what the catalog holds in memory of a container that is not in use. Only def changes.
type ref struct {
	id string
	front
	sum uint64 // hash of the entry: a change of the slot map doesn't change the front
	// def is the definition, after the first use. A change of the container loads it first, so a definition that is
	// loaded later is always the one that the ref stands for.
	def atomic.Pointer[Container]
}

// front is the beginning of a container's entry.
type front struct {
	num     uint32
	gen     uint32
	version uint64
	flags   uint8
}

// frontLen is the length of a stored front, with the format before it.
const frontLen = 1 + 4 + 4 + 8 + 1

// The flags of a front.
const (
	flagTTL    = 1 << iota // the container has a default time to live, or an index that ends the life of items
	flagFormer             // index entries may follow former indexing policies
	flagLog                // the container has a log of all versions
)

// flagTimed are the flags of containers in which something expires: items, or versions in the log.
const flagTimed = flagTTL | flagLog

func frontOf(k *Container) front {
	h := front{num: k.Num, gen: k.Gen, version: k.Version}
	if k.DefaultTTL != nil || k.expires() {
		h.flags |= flagTTL
	}
	if len(k.Former) > 0 {
		h.flags |= flagFormer
	}
	if k.LogMinutes > 0 {
		h.flags |= flagLog
	}
	return h
}

// newRef returns the ref of a definition with its entry.
func newRef(k *Container, entry []byte) *ref {
	r := &ref{id: k.ID, front: frontOf(k), sum: xxhash.Sum64(entry)}
	r.def.Store(k)
	return r
}

// encodeContainer returns the entry of a container.
func encodeContainer(k *Container) ([]byte, error) {
	h := frontOf(k)
	b := append(make([]byte, 0, 1024), formatContainer)
	b = binary.BigEndian.AppendUint32(b, h.num)
	b = binary.BigEndian.AppendUint32(b, h.gen)
	b = binary.BigEndian.AppendUint64(b, h.version)
	b = append(b, h.flags)
	j, err := json.Marshal(k)
	return append(b, j...), err
}

// decodeFront reads the front of a container's entry. An entry of the previous format is read whole.
func decodeFront(b []byte) (h front, err error) {
	if len(b) > frontLen && b[0] == formatContainer {
		return front{num: binary.BigEndian.Uint32(b[1:]), gen: binary.BigEndian.Uint32(b[5:]),
			version: binary.BigEndian.Uint64(b[9:]), flags: b[17]}, nil
	}
	k := Container{}
	if err := decode(b, &k); err != nil {
		return h, err
	}
	return frontOf(&k), nil
}

// decodeContainer reads a container's entry of a database and checks what other code relies on.
func decodeContainer(b []byte, database string) (*Container, error) {
	h, err := decodeFront(b)
	if err != nil {
		return nil, err
	}
	k := &Container{Database: database}
	if b[0] == formatContainer {
		err = decodeJSON(b[frontLen:], k)
	} else {
		err = decode(b, k)
	}
	if err != nil {
		return nil, err
	}
	if err := k.prepare(); err != nil {
		return nil, status.Wrap(status.Corruption, err, "catalog entry is malformed")
	}
	if frontOf(k) != h {
		return nil, status.New(status.Corruption, "catalog entry of container %q has another one's numbers", k.ID)
	}
	return k, k.verify()
}

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append([]byte{formatCatalog}, b...), err
}

func decode(b []byte, v any) error {
	if len(b) == 0 || b[0] != formatCatalog {
		return status.New(status.Corruption, "catalog entry of unknown format")
	}
	return decodeJSON(b[1:], v)
}

func decodeJSON(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return status.Wrap(status.Corruption, err, "catalog entry is malformed")
	}
	return nil
}

// formatVersion is the first byte of the catalog's version, and of notes.
const formatVersion = 1

func versionKey() []byte { return keys.AppendMeta(nil, keys.MetaVersion, 0, "") }

func encodeVersion(n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{formatVersion}, n)
}

func decodeVersion(b []byte) (uint64, error) {
	if len(b) != 9 || b[0] != formatVersion {
		return 0, status.New(status.Corruption, "the catalog's version is of unknown format")
	}
	return binary.BigEndian.Uint64(b[1:]), nil
}
