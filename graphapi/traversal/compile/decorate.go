// Package compile rewrites the instructions of a traversal before they are compiled to steps. It applies the strategies
// of a source (PartitionStrategy, SubgraphStrategy, ReadOnlyStrategy), resolves the infix forms of and() and or(), and
// folds V().hasLabel(..).has(..) into one look-up that an index can answer.
package compile

import (
	"errors"
	"fmt"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// ErrUnsupported is the error for a strategy that is known but not supported.
var ErrUnsupported = errors.New("not supported")

// Refusal is the error for a traversal that one of its strategies refuses, in TinkerPop's words.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Config is the configuration from the strategies of a source.
type Config struct {
	readOnly   bool
	partition  []partition
	subgraph   []subgraph
	verify     verifier
	productive productive
	Seed       any // of SeedStrategy; nil: none
}

type partition struct {
	key   string
	write any
	read  []any
}

type subgraph struct {
	vertices, edges *gvalue.Bytecode
	checkEnds       bool
}

// ignored are strategies that only affect how TinkerPop executes a traversal, not its results.
var ignored = map[string]bool{
	"AdjacentToIncidentStrategy": true, "ByModulatorOptimizationStrategy": true, "ConnectiveStrategy": true,
	"CountStrategy": true, "EarlyLimitStrategy": true, "FilterRankingStrategy": true,
	"IdentityRemovalStrategy": true, "IncidentToAdjacentStrategy": true, "InlineFilterStrategy": true,
	"LazyBarrierStrategy": true, "MatchPredicateStrategy": true, "OrderLimitStrategy": true,
	"PathProcessorStrategy": true, "PathRetractionStrategy": true, "RepeatUnrollStrategy": true,
	"MatchAlgorithmStrategy": true, "HaltedTraverserStrategy": true, "ProfileStrategy": true,
	"StandardVerificationStrategy": true, "LambdaRestrictionStrategy": true,
	"ComputerVerificationStrategy": true, "RequirementsStrategy": true, "SideEffectStrategy": true,
	"ReferenceElementStrategy": true, "MessagePassingReductionStrategy": true, "TinkerGraphStepStrategy": true,
	"TinkerGraphCountStrategy": true, "ComputerFinalizationStrategy": true,
	"VertexProgramRestrictionStrategy": true,
}

// Add adds one strategy to the configuration. The caller handles OptionsStrategy.
func (c *Config) Add(s *gvalue.Strategy) error {
	switch name := s.Name(); name {
	case "ReadOnlyStrategy":
		c.readOnly = true
	case "PartitionStrategy":
		return c.addPartition(s)
	case "SubgraphStrategy":
		return c.addSubgraph(s)
	case "ReservedKeysVerificationStrategy", "EdgeLabelVerificationStrategy":
		c.addVerifier(s)
	case "ProductiveByStrategy":
		c.productive = productive{on: true, keys: stringsIn(setting(s, "productiveKeys"))}
	case "SeedStrategy":
		c.Seed = setting(s, "seed")
	case "ElementIdStrategy", "EventStrategy", "VertexProgramStrategy", "GraphFilterStrategy":
		return fmt.Errorf("%s is %w", name, ErrUnsupported)
	default:
		if !ignored[name] {
			return fmt.Errorf("%s is %w", name, ErrUnsupported)
		}
	}
	return nil
}

// Remove removes strategies (withoutStrategies).
func (c *Config) Remove(name string) {
	switch name {
	case "ReadOnlyStrategy":
		c.readOnly = false
	case "PartitionStrategy":
		c.partition = nil
	case "SubgraphStrategy":
		c.subgraph = nil
	case "EdgeLabelVerificationStrategy":
		c.verify.edgeLabels = false
	case "ReservedKeysVerificationStrategy":
		c.verify.reserved = nil
	case "ProductiveByStrategy":
		c.productive = productive{}
	case "SeedStrategy":
		c.Seed = nil
	}
}

func setting(s *gvalue.Strategy, names ...string) any {
	for _, n := range names {
		if v, ok := s.Config.GetString(n); ok {
			return v
		}
	}
	return nil
}

func (c *Config) addPartition(s *gvalue.Strategy) error {
	key, ok := setting(s, "partitionKey").(string)
	if !ok {
		return errors.New("PartitionStrategy needs a partitionKey")
	}
	p := partition{key: key, write: setting(s, "writePartition")}
	switch r := setting(s, "readPartitions").(type) {
	case nil:
	case []any:
		p.read = r
	case *gvalue.Set:
		p.read = r.Items()
	default:
		p.read = []any{r}
	}
	c.partition = append(c.partition, p)
	return nil
}

func (c *Config) addSubgraph(s *gvalue.Strategy) error {
	g := subgraph{checkEnds: true}
	g.vertices, _ = setting(s, "vertices", "vertexCriterion").(*gvalue.Bytecode)
	g.edges, _ = setting(s, "edges", "edgeCriterion").(*gvalue.Bytecode)
	if setting(s, "vertexProperties", "vertexPropertyCriterion") != nil {
		return fmt.Errorf("the vertexProperties of SubgraphStrategy are %w", ErrUnsupported)
	}
	if b, ok := setting(s, "checkAdjacentVertices").(bool); ok {
		g.checkEnds = b
	}
	c.subgraph = append(c.subgraph, g)
	return nil
}

// mutating are the steps that write.
var mutating = map[string]bool{
	"addV": true, "addE": true, "property": true, "drop": true, "mergeV": true, "mergeE": true,
}

// Mutates reports whether a step writes.
func Mutates(op string) bool { return mutating[op] }

// The kind of element that a step returns.
var toVertices = map[string]bool{
	"V": true, "out": true, "in": true, "both": true, "outV": true, "inV": true, "bothV": true, "otherV": true,
	"to": true, "toV": true,
}
var toEdges = map[string]bool{"E": true, "outE": true, "inE": true, "bothE": true, "toE": true}

// Decorate rewrites a traversal and its nested traversals as the strategies require.
//
// Example: with SubgraphStrategy(vertices: hasLabel('a')), the steps V().out() become
// V().filter(hasLabel('a')).out().filter(hasLabel('a')). An element that addV() or addE() has added is filtered too:
// it is added, and isn't a result.
func (c *Config) Decorate(ins []gvalue.Instruction) ([]gvalue.Instruction, error) {
	verifies := c.readOnly || c.verify.edgeLabels || c.verify.reserved != nil
	if !verifies && len(c.partition) == 0 && len(c.subgraph) == 0 {
		return ins, nil
	}
	return c.decorate(ins)
}

func (c *Config) decorate(ins []gvalue.Instruction) ([]gvalue.Instruction, error) {
	out := make([]gvalue.Instruction, 0, len(ins)+4)
	var added []gvalue.Instruction // the filters for an element that is being added
	for i, in := range ins {
		isTo := in.Op == "to" && (len(in.Args) == 0 || isDirection(in.Args[0]))
		if added != nil && (isTo || !partOfAdding[in.Op]) {
			out, added = append(out, added...), nil
		}
		if c.readOnly && mutating[in.Op] {
			return nil, Refusal("The provided traversal has a mutating step and thus is not read only")
		}
		if err := c.verify.instruction(in); err != nil {
			return nil, err
		}
		args := make([]any, len(in.Args))
		for j, a := range in.Args {
			args[j] = a
			if b, ok := a.(*gvalue.Bytecode); ok {
				sub, err := c.decorate(b.Steps)
				if err != nil {
					return nil, err
				}
				args[j] = &gvalue.Bytecode{Source: b.Source, Steps: sub}
			}
		}
		if (in.Op == "out" || in.Op == "in" || in.Op == "both") && c.filtersEdges() {
			// The traversed edges must also pass the filter.
			out = append(out, gvalue.Instruction{Op: in.Op + "E", Args: args})
			out = append(out, c.edgeFilters()...)
			out = append(out, gvalue.Instruction{
				Op: map[string]string{"out": "inV", "in": "outV", "both": "otherV"}[in.Op]})
			out = append(out, c.vertexFilters()...)
			continue
		}
		out = append(out, gvalue.Instruction{Op: in.Op, Args: args})
		switch {
		case in.Op == "to" && !isTo:
		case toVertices[in.Op]:
			out = append(out, c.vertexFilters()...)
		case toEdges[in.Op]:
			out = append(out, c.edgeFilters()...)
		case in.Op == "addV" || in.Op == "addE":
			switch { // TinkerPop has none after an addE() that begins a traversal, and none in mergeV() and mergeE()
			case in.Op == "addV":
				added = c.vertexCriteria(nil)
			case i > 0:
				added = c.edgeCriteria(nil)
			}
			for _, p := range c.partition {
				if p.write != nil {
					out = append(out, gvalue.Instruction{Op: "property", Args: []any{p.key, p.write}})
				}
			}
		}
	}
	return append(out, added...), nil
}

// partOfAdding are the steps after addV() and addE() that say what is added.
var partOfAdding = map[string]bool{"property": true, "from": true, "to": true, "as": true}

// Written returns the properties that PartitionStrategy gives to new elements, or nil if there is none. mergeV() and
// mergeE() search for them too. A strategy without a write partition has null, which they refuse.
func (c *Config) Written() *gvalue.Map {
	if len(c.partition) == 0 {
		return nil
	}
	m := gvalue.NewMap(len(c.partition))
	for _, p := range c.partition {
		m.Put(p.key, p.write)
	}
	return m
}

func isDirection(a any) bool {
	_, ok := a.(gvalue.Direction)
	return ok
}

func (c *Config) filtersEdges() bool {
	for _, s := range c.subgraph {
		if s.edges != nil || s.vertices != nil && s.checkEnds {
			return true
		}
	}
	return len(c.partition) > 0
}

func (c *Config) vertexFilters() []gvalue.Instruction { return c.vertexCriteria(c.partitionFilters()) }

func (c *Config) edgeFilters() []gvalue.Instruction { return c.edgeCriteria(c.partitionFilters()) }

// vertexCriteria appends the filters of SubgraphStrategy for vertices, and edgeCriteria those for edges.
func (c *Config) vertexCriteria(out []gvalue.Instruction) []gvalue.Instruction {
	for _, s := range c.subgraph {
		if s.vertices != nil {
			out = append(out, gvalue.Instruction{Op: "filter", Args: []any{s.vertices}})
		}
	}
	return out
}

func (c *Config) edgeCriteria(out []gvalue.Instruction) []gvalue.Instruction {
	for _, s := range c.subgraph {
		if s.edges != nil {
			out = append(out, gvalue.Instruction{Op: "filter", Args: []any{s.edges}})
		}
		if s.vertices != nil && s.checkEnds {
			for _, end := range []string{"inV", "outV"} {
				b := &gvalue.Bytecode{Steps: append([]gvalue.Instruction{{Op: end}}, s.vertices.Steps...)}
				out = append(out, gvalue.Instruction{Op: "filter", Args: []any{b}})
			}
		}
	}
	return out
}

func (c *Config) partitionFilters() []gvalue.Instruction {
	var out []gvalue.Instruction
	for _, p := range c.partition {
		if p.read != nil {
			out = append(out, gvalue.Instruction{Op: "has", Args: []any{p.key, &gvalue.P{Op: "within", Args: p.read}}})
		}
	}
	return out
}

// Infix turns a.and().b and a.or().b into and(a, b) and or(a, b). The source's first step stays outside.
func Infix(ins []gvalue.Instruction) ([]gvalue.Instruction, error) {
	marked := false
	for _, in := range ins {
		marked = marked || len(in.Args) == 0 && (in.Op == "and" || in.Op == "or")
	}
	if !marked {
		return ins, nil
	}
	start := 0
	for start < len(ins) && (ins[start].Op == "V" || ins[start].Op == "E" || ins[start].Op == "inject") {
		start++
	}
	cond, err := connective(ins[start:])
	if err != nil {
		return nil, err
	}
	return append(append([]gvalue.Instruction{}, ins[:start]...), cond...), nil
}

// connective splits at or() first, because and() has the higher precedence.
func connective(ins []gvalue.Instruction) ([]gvalue.Instruction, error) {
	for _, op := range []string{"or", "and"} {
		var parts [][]gvalue.Instruction
		from := 0
		for i, in := range ins {
			if in.Op == op && len(in.Args) == 0 {
				parts = append(parts, ins[from:i])
				from = i + 1
			}
		}
		if parts == nil {
			continue
		}
		parts = append(parts, ins[from:])
		args := make([]any, 0, len(parts))
		for _, p := range parts {
			if len(p) == 0 {
				return nil, errors.New("The step " + op + "() between two conditions lacks one of them")
			}
			sub, err := connective(p)
			if err != nil {
				return nil, err
			}
			args = append(args, &gvalue.Bytecode{Steps: sub})
		}
		return []gvalue.Instruction{{Op: op, Args: args}}, nil
	}
	return ins, nil
}
