// Package index derives index terms from an indexing policy and a document. A term is a path id (8 bytes) and an
// encoded value; the store appends item number and identity to make a key (core/keys).
//
// A path id is a chain of xxhashes over the stored segment names, beginning with the container's seed. So there is no
// dictionary of paths, which documents with user ids as field names could grow without limit. Array elements have the
// path id of their array; the flag byte of the entry says that the value is an element.
//
// Example: the document {"a": {"b": 5}, "tags": ["x"]} has, under the default policy, these terms:
//
//	path id of /a/b,  number 5    flag: formOwn (an Int32)
//	path id of /tags, string "x"  flag: FlagElement
//
// and terms for the object at /a, the array at /tags and _ts.
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

// Default is the service's default indexing policy, used when a container has none. It indexes everything.
const Default = `{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],` +
	`"excludedPaths":[{"path":` + ETagJSON + `}]}`

// The path of _etag, which every policy excludes, and the same in JSON.
const (
	ETagPath = `/"_etag"/?`
	ETagJSON = `"/\"_etag\"/?"`
)

// MaxPaths is the largest number of included paths of a policy, and of excluded paths.
const MaxPaths = 1500

// SystemTS is the name under which the system field _ts of an item is indexed. A document's own field _ts has another
// path id.
const SystemTS = "\x00_ts"

// Policy is a compiled indexing policy. It is immutable.
type Policy struct {
	Seed   uint64
	former bool // values are encoded as in store format 2
	none   bool // indexing mode none: only id, _ts and graph adjacency
	empty  bool // no entries at all: see Nothing
	root   *node
	exact  []exactPath // paths without a wildcard: items without a value there get an "undefined" entry

	composites []*Composite
	tuples     []*Composite
	spatial    []SpatialRule
	words      *Words // nil: none
	texts      []textRule
}

type exactPath struct {
	segs []string
	id   uint64
}

// rule says whether values are indexed. unset means that the subtree rule of the parent applies.
type rule uint8

const (
	unset rule = iota
	include
	exclude
)

// node is a segment of the policy's paths.
type node struct {
	kids    map[string]*node // "[]" is the child for array elements
	subtree rule             // .../*
	scalar  rule             // .../?
}

type policyJSON struct {
	IndexingMode  string     `json:"indexingMode"`
	IncludedPaths []pathJSON `json:"includedPaths"`
	ExcludedPaths []pathJSON `json:"excludedPaths"`

	CompositeIndexes [][]ColumnJSON    `json:"compositeIndexes"`
	SpatialIndexes   []json.RawMessage `json:"spatialIndexes"`
	WordIndexes      []json.RawMessage `json:"wordIndexes"`
	TextIndexes      []json.RawMessage `json:"textIndexes"`
	CollatedIndexes  []json.RawMessage `json:"collatedIndexes"`
}

type pathJSON struct {
	Path string `json:"path"`
}

// always are the paths that are indexed under every policy: the identity, and those that graph traversals need.
var always = []string{"_id", "label", "_sink", "_vertexId"}

// Compile compiles the JSON of an indexing policy; nil is Default. seed is the container's seed (its generation). A
// malformed policy is BadRequest.
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
		p.addWords(j.WordIndexes)
		p.addTexts(j.TextIndexes)
		p.addCollated(j.CollatedIndexes)
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
	case path == "/": // as the first versions of the protocol write "/*"
		last = '*'
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
	if len(segs) == 1 && segs[0] == "_etag" { // a system field, never part of the stored document
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

// child returns the id of the path that extends parent by one segment.
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

// Covers reports whether every value at a path (and, with elements, inside its arrays) has an index entry, so that a
// scan of the path finds every item with a value there.
func (p *Policy) Covers(segs []string, elements bool) bool {
	if len(segs) > 0 && len(segs[0]) > 0 && segs[0][0] == 0 {
		return segs[0] == WordsPath && p.words != nil ||
			(segs[0] == TextPath && elements || segs[0] == LengthPath && !elements) && p.hasText(segs[1:])
	}
	n, in := p.root, p.root.subtree == include
	for _, s := range segs {
		if n != nil {
			if elements && n.kids["[]"] != nil {
				return false // the policy has rules for elements here: don't rely on the index
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

// Everything returns the default policy with the path ids of p.
func (p *Policy) Everything() *Policy { return &Policy{Seed: p.Seed, root: &node{subtree: include}} }

// Former returns the default policy with the path ids of p and the encodings of store format 2.
func (p *Policy) Former() *Policy {
	f := p.Everything()
	f.former = true
	return f
}

// Minimal returns the policy for an item written with the indexing directive Exclude: only the paths of always.
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

// Exact reports whether the policy names a path without a wildcard. Items without a value there then have an entry of
// class Undefined.
func (p *Policy) Exact(path uint64) bool {
	for i := range p.exact {
		if p.exact[i].id == path {
			return true
		}
	}
	return false
}

// SameBelow reports whether two policies make the same entries at and below a field of the document. If so, a rebuild
// from one policy to the other keeps these entries. An item with more than MaxTerms terms is an exception.
func SameBelow(a, b *Policy, field string) bool {
	if field == WordsPath || field == TextPath || field == LengthPath {
		return reflect.DeepEqual(a.words, b.words) && reflect.DeepEqual(a.texts, b.texts)
	}
	return a.empty == b.empty && a.root.subtree == b.root.subtree &&
		reflect.DeepEqual(a.root.kids[field], b.root.kids[field])
}
