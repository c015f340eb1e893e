package expand

import (
	"sort"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// A container's vector embedding policy names the distance function of each path that has vectors. VectorDistance of
// such a path measures with that function, unless the query names another: the name is written into the call before it
// is compiled.

// Embedding is a path with vectors, as its segments, and their distance function.
type Embedding struct {
	Path     []string
	Distance string
}

// WithEmbeddings returns c, which may be nil, with a container's embeddings; nil when there is nothing in it. Cosine is
// what VectorDistance takes anyway and isn't kept.
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

// OnlyEmbeddings returns what a query plan sees of c: the names of computed properties stay in its text, for the server
// expands them when the text comes back.
func (c *Computed) OnlyEmbeddings() *Computed {
	if c == nil || len(c.distances) == 0 {
		return nil
	}
	return &Computed{distances: c.distances, Key: "\x00plan" + c.Key, Hash: c.Hash}
}

// distance writes the distance function of an embedding into a call of VectorDistance that names none.
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

// embedding returns the distance function of the path that e is, "" when it is none.
func (x *expander) embedding(e syntax.Expr) string {
	var path []string
	for {
		p, ok := e.(*syntax.Prop)
		if !ok {
			break
		}
		path = append(path, p.Name)
		e = p.Base
	}
	if !x.isRoot(e) {
		return ""
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return x.comp.distances[strings.Join(path, "\x00")]
}
