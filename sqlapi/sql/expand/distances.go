package expand

import (
	"slices"
	"sort"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// A container's vector embedding policy names the distance function of each path that has vectors. VectorDistance on
// such a path uses that function unless the query names another one. The name is written into the call before the query
// is compiled.
//
// Example: the policy says that /v uses "euclidean".
//
//	input:  VectorDistance(c.v, [1, 2])
//	output: VectorDistance(c.v, [1, 2], false, {"distanceFunction": "euclidean"})

// Embedding is a path that has vectors, split into its segments, and the distance function of these vectors.
type Embedding struct {
	Path     []string
	Distance string
}

// WithEmbeddings returns a copy of c with a container's embeddings. c may be nil. When no embedding needs to be stored
// it returns c itself. Cosine isn't stored, because it is the default of VectorDistance.
func (c *Computed) WithEmbeddings(list []Embedding) *Computed {
	out := Computed{}
	if c != nil {
		out = *c
	}
	out.distances = nil
	for _, e := range list {
		if f := strings.ToLower(e.Distance); f != "" && f != "cosine" {
			if out.distances == nil {
				out.distances = map[string]string{}
			}
			out.distances[strings.Join(e.Path, "\x00")] = f
		}
	}
	if out.distances == nil {
		return c
	}
	paths := make([]string, 0, len(out.distances))
	for p := range out.distances {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	out.Key += "\x00"
	for _, p := range paths {
		out.Key += p + "\x00" + out.distances[p] + "\x00"
	}
	out.Hash = xxhash.Sum64String(out.Key)
	return &out
}

// OnlyEmbeddings returns the part of c that is used for a query plan, nil when there is none. A plan's text keeps the
// names of computed properties: the server expands them when the client sends the text back.
func (c *Computed) OnlyEmbeddings() *Computed {
	if c == nil || len(c.distances) == 0 {
		return nil
	}
	return &Computed{distances: c.distances, Key: "\x00plan" + c.Key, Hash: c.Hash}
}

// distance adds the distance function of an embedding to a call of VectorDistance that doesn't name one.
func (x *expander) distance(call *syntax.Call) {
	if x.comp == nil || len(x.comp.distances) == 0 || call.UDF || len(call.Args) < 2 ||
		!strings.EqualFold(call.Name, "VectorDistance") {
		return
	}
	name := x.embedding(call.Args[0])
	if name == "" {
		name = x.embedding(call.Args[1])
	}
	if name == "" {
		return
	}
	if len(call.Args) == 2 {
		call.Args = append(call.Args, &syntax.Lit{Node: syntax.Node{}.Above(), Val: value.BoolOf(false)})
	}
	function := &syntax.Lit{Node: syntax.Node{}.Above(), Val: value.StringOf(name)}
	options := &syntax.ObjectExpr{}
	if len(call.Args) > 3 {
		o, ok := call.Args[3].(*syntax.ObjectExpr)
		if !ok {
			return
		}
		for _, k := range o.Keys {
			if k == "distanceFunction" {
				return
			}
		}
		*options = *o
		options.Keys, options.Vals = append([]string(nil), o.Keys...), append([]syntax.Expr(nil), o.Vals...)
	}
	options.Keys = append(options.Keys, "distanceFunction")
	options.Vals = append(options.Vals, function)
	options.Node = options.Node.Above(function)
	call.Args = append(call.Args[:3:3], options)
	call.Node = call.Node.Above(options)
}

// embedding returns the distance function of the path e, "" when e isn't a path of an embedding.
func (x *expander) embedding(e syntax.Expr) string {
	path, ok := x.path(e)
	if !ok {
		return ""
	}
	return x.comp.distances[path]
}

// path returns the names of a path on the item, joined by U+0000. ok is false when e is something else.
func (x *expander) path(e syntax.Expr) (path string, ok bool) {
	var names []string
	for {
		p, ok := e.(*syntax.Prop)
		if !ok {
			break
		}
		names = append(names, p.Name)
		e = p.Base
	}
	if !x.isRoot(e) {
		return "", false
	}
	slices.Reverse(names)
	return strings.Join(names, "\x00"), true
}
