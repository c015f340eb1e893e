// Package index turns an indexing policy and a document into index terms. A term is a path id (8 bytes) and an encoded
// value; the store completes it with item number and identity to a key (core/keys).
//
// A path id is a chain of xxhashes from the container's seed over the stored segment names, so no dictionary of paths
// exists that documents with user ids as field names could grow. Array elements share the path id of their array; the
// entry's flag byte says that it is an element.
package index

import (
	"encoding/binary"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/status"
)

// Default is the service's indexing policy of a container that was given none: it indexes everything.
const Default = `{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],` +
	`"excludedPaths":[{"path":` + ETagJSON + `}]}`

// The path of _etag, which every policy excludes, and the same as JSON.
const (
	ETagPath = `/"_etag"/?`
	ETagJSON = `"/\"_etag\"/?"`
)

// MaxPaths is how many included paths a policy may have, and how many excluded ones.
const MaxPaths = 1500

// SystemTS is the name under which an item's _ts is indexed; a document's own field _ts has another path id.
const SystemTS = "\x00_ts"

// Policy is a compiled indexing policy. It never changes.
type Policy struct {
	Seed   uint64
	former bool // values are encoded as in format 2
	none   bool // indexing mode none: only id, _ts and graph adjacency
	empty  bool // no entries at all: see Nothing
	root   *node
	exact  []exactPath // paths named exactly: they also get "undefined" entries

	composites []*Composite
	tuples     []*Composite
	spatial    []SpatialRule
}

type exactPath struct {
	segs []string
	id   uint64
}

// rule says whether values are indexed; unset defers to the parent's subtree rule.
type rule uint8

const (
	unset rule = iota
	include
	exclude
)

// node is a segment of the policy's paths.
type node struct {
	kids    map[string]*node // "[]" is an array element
	subtree rule             // .../*
	scalar  rule             // .../?
}

type policyJSON struct {
	IndexingMode  string     `json:"indexingMode"`
	IncludedPaths []pathJSON `json:"includedPaths"`
	ExcludedPaths []pathJSON `json:"excludedPaths"`

	CompositeIndexes [][]columnJSON    `json:"compositeIndexes"`
	SpatialIndexes   []json.RawMessage `json:"spatialIndexes"`
}

type pathJSON struct {
	Path string `json:"path"`
}

// always are the paths that are indexed whatever the policy says: identity, and what graph traversals need.
var always = []string{"_id", "label", "_sink", "_vertexId"}

// Compile compiles the JSON of an indexing policy; nil is Default. seed is the
// container's (its generation). A malformed policy is BadRequest.
func Compile(policy []byte, seed uint64) (*Policy, error) {
	p := &Policy{Seed: seed, root: &node{subtree: include}}
	if len(policy) == 0 {
		return p, nil
	}
	var j policyJSON
	if err := json.Unmarshal(policy, &j); err != nil {
		return nil, status.Wrap(status.BadRequest, err, "The indexing policy is malformed.")
	}
	p.root.subtree = exclude
	if strings.EqualFold(j.IndexingMode, "none") {
		p.none = true
	} else if len(j.IncludedPaths) == 0 && len(j.ExcludedPaths) == 0 {
		p.root.subtree = include
	}
	for _, set := range []struct {
		paths []pathJSON
		rule  rule
	}{{j.IncludedPaths, include}, {j.ExcludedPaths, exclude}} {
		if p.none {
			break
		}
		for _, e := range set.paths {
			if err := p.add(e.Path, set.rule); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range always {
		p.root.kid(name).scalar = include
	}
	if !p.none {
		if err := p.compileComposites(j.CompositeIndexes); err != nil {
			return nil, err
		}
		p.addSpatial(j.SpatialIndexes)
	}
	return p, nil
}

func (n *node) kid(name string) *node {
	if n.kids == nil {
		n.kids = map[string]*node{}
	}
	k := n.kids[name]
	if k == nil {
		k = &node{}
		n.kids[name] = k
	}
	return k
}

func (p *Policy) add(path string, r rule) error {
	bad := func() error {
		return status.New(status.BadRequest, "The indexing path %q could not be accepted.", path)
	}
	if IsTuple(path) && r == include {
		if !p.addTuple(path) {
			return bad()
		}
		return nil
	}
	var base string
	var last byte
	switch {
	case strings.HasSuffix(path, "/*"):
		base, last = path[:len(path)-2], '*'
	case strings.HasSuffix(path, "/?"):
		base, last = path[:len(path)-2], '?'
	default:
		return bad()
	}
	var segs []string
	if base != "" {
		var err error
		if segs, err = catalog.ParsePath(base); err != nil {
			return bad()
		}
	}
	if len(segs) == 1 && segs[0] == "_etag" { // a system field: never part of the stored document
		return nil
	}
	n := p.root
	elements := false
	for _, s := range segs {
		n = n.kid(s)
		elements = elements || s == "[]"
	}
	if last == '*' {
		n.subtree = r
		return nil
	}
	n.scalar = r
	if r == include && !elements {
		p.exact = append(p.exact, exactPath{segs, p.PathID(segs)})
	}
	return nil
}

// PathID returns the id of a path of stored segment names, without array marks.
func (p *Policy) PathID(segs []string) uint64 {
	id := p.Seed
	for _, s := range segs {
		id = child(id, []byte(s))
	}
	return id
}

// child returns the id of the path one segment below parent.
func child(parent uint64, seg []byte) uint64 {
	var b [72]byte
	binary.BigEndian.PutUint64(b[:], parent)
	if len(seg) <= len(b)-8 {
		return xxhash.Sum64(b[:8+copy(b[8:], seg)])
	}
	d := xxhash.New()
	_, _ = d.Write(b[:8])
	_, _ = d.Write(seg)
	return d.Sum64()
}

// Covers reports whether every value at a path (and, with elements, inside its arrays) has an index entry, so that an
// index scan of the path finds every item that has a value there.
func (p *Policy) Covers(segs []string, elements bool) bool {
	n, in := p.root, p.root.subtree == include
	for _, s := range segs {
		if n != nil {
			if elements && n.kids["[]"] != nil {
				return false // elements have rules of their own here: don't rely on the index
			}
			if n = n.kids[s]; n != nil && n.subtree != unset {
				in = n.subtree == include
			}
		}
	}
	if n != nil {
		if n.kids["[]"] != nil {
			return false
		}
		if n.scalar != unset {
			return n.scalar == include && (in || !elements)
		}
	}
	return in
}

// Nothing returns the policy of an index without any entry.
func Nothing(seed uint64) *Policy {
	return &Policy{Seed: seed, none: true, empty: true, root: &node{subtree: exclude}}
}

// Everything returns the default policy with the same path ids.
func (p *Policy) Everything() *Policy { return &Policy{Seed: p.Seed, root: &node{subtree: include}} }

// Former returns the default policy with the same path ids and the encodings of format 2.
func (p *Policy) Former() *Policy {
	f := p.Everything()
	f.former = true
	return f
}

// Minimal returns the policy of an item written with the indexing directive Exclude: only what is always indexed.
func (p *Policy) Minimal() *Policy {
	if p.empty {
		return p
	}
	m := &Policy{Seed: p.Seed, none: true, root: &node{subtree: exclude}}
	for _, name := range always {
		m.root.kid(name).scalar = include
	}
	return m
}

// Exact reports whether the policy names a path: then items without a value there have an entry, of class Undefined.
func (p *Policy) Exact(path uint64) bool {
	for i := range p.exact {
		if p.exact[i].id == path {
			return true
		}
	}
	return false
}

// SameBelow reports whether two policies have the same entries of values at and below a field of the document: so
// whatever rebuild goes from one to the other, these entries stay. They don't where an item has more than MaxTerms.
func SameBelow(a, b *Policy, field string) bool {
	return a.empty == b.empty && a.root.subtree == b.root.subtree &&
		reflect.DeepEqual(a.root.kids[field], b.root.kids[field])
}
