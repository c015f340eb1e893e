package gvtest

import (
	"strings"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// anySteps are called with random arguments; most such calls must be refused.
var anySteps = strings.Fields("V E addV addE inject out in both outE inE bothE outV inV bothV otherV values " +
	"properties valueMap elementMap id label key value " +
	"has hasId hasLabel hasKey hasValue hasNot where is and or not filter dedup limit range skip tail coin " +
	"sample simplePath cyclicPath drop fail aggregate store " +
	"group groupCount cap sideEffect property inject union coalesce choose optional repeat until emit times " +
	"branch option as by from to select project path tree " +
	"count sum max min mean fold unfold order constant identity map flatMap local index loops math sack " +
	"concat asString asNumber asDate dateAdd toUpper length " +
	"trim reverse replace split substring conjoin merge product all any none discard barrier with mergeV " +
	"mergeE subgraph match profile executionProfile nonsense")

// fittingSteps are called with arguments of allowed kinds; most such calls run.
var fittingSteps []fitting

type fitting struct {
	steps string
	args  func(m *mixer, depth int) []any
}

func init() {
	fittingSteps = []fitting{
		{"out in both outE inE bothE outV inV bothV otherV values properties valueMap elementMap id label key " +
			"value dedup simplePath cyclicPath path tree count sum " +
			"max min mean fold unfold order identity group groupCount barrier index loops asString asNumber " +
			"toUpper length trim reverse emit by fail drop",
			func(*mixer, int) []any { return nil }},
		{"where not filter sideEffect map flatMap local optional repeat until emit by choose group and or " +
			"union coalesce branch order any all",
			func(m *mixer, d int) []any { return []any{m.child(d)} }},
		{"and or union coalesce choose option", func(m *mixer, d int) []any { return []any{m.child(d), m.child(d)} }},
		{"as select by values has hasNot hasLabel aggregate store cap group groupCount project from to where " +
			"out properties constant inject addV addE concat math " +
			"valueMap tree subgraph conjoin split", func(m *mixer, _ int) []any { return []any{m.word()} }},
		{"limit skip tail times V E hasId is constant inject sample property split option",
			func(m *mixer, _ int) []any { return []any{int32(m.Intn(4))} }},
		{"limit tail count sum dedup order max min mean unfold range select by aggregate", func(m *mixer, _ int) []any {
			return []any{m.token()}
		}},
		{"has property select range by option choose where is replace to hasLabel inject", func(m *mixer, _ int) []any {
			return []any{m.word(), m.any(9)}
		}},
	}
}

// Chance gives random numbers from 0 to n-1, as a *rand.Rand of a test does.
type Chance interface{ Intn(n int) int }

// mixer makes random bytecode.
type mixer struct{ Chance }

func (m *mixer) word() any { return []string{"name", "age", "a", "b", "marko", ""}[m.Intn(6)] }

func (m *mixer) token() any {
	return []any{gvalue.Local, gvalue.Keys, gvalue.Values, gvalue.Desc, gvalue.TID, gvalue.TLabel, gvalue.Last,
		gvalue.All, gvalue.Single, gvalue.OUT}[m.Intn(10)]
}

func (m *mixer) child(depth int) any {
	if depth > 3 {
		return (&gvalue.Bytecode{}).Add("identity")
	}
	return m.bytecode(depth + 1)
}

// any returns a random value that a client can send.
func (m *mixer) any(depth int) any {
	switch m.Intn(8) {
	case 0:
		return int32(m.Intn(4))
	case 1:
		return m.word()
	case 2:
		return m.token()
	case 3:
		return m.child(depth)
	case 4:
		return &gvalue.P{Op: []string{"gt", "eq", "within", "neq", "between", "not", "and", "nonsense"}[m.Intn(8)],
			Args: []any{m.word()}}
	}
	list := [][]any{Language(), Scalars(), Collections(), Elements()}[m.Intn(4)]
	return list[m.Intn(len(list))]
}

func (m *mixer) bytecode(depth int) *gvalue.Bytecode {
	b := &gvalue.Bytecode{}
	for range m.Intn(5) + 1 {
		if m.Intn(10) == 0 {
			in := gvalue.Instruction{Op: anySteps[m.Intn(len(anySteps))]}
			for range m.Intn(4) {
				in.Args = append(in.Args, m.any(depth))
			}
			b.Steps = append(b.Steps, in)
			continue
		}
		f := fittingSteps[m.Intn(len(fittingSteps))]
		steps := strings.Fields(f.steps)
		b.Add(steps[m.Intn(len(steps))], f.args(m, depth)...)
	}
	return b
}

// Traversal returns random bytecode with a valid first step.
func Traversal(c Chance) *gvalue.Bytecode {
	m := &mixer{c}
	b := m.bytecode(0)
	start := gvalue.Instruction{Op: []string{"V", "E", "addV", "inject"}[m.Intn(4)]}
	if start.Op == "inject" {
		start.Args = []any{m.any(1), m.any(1)}
	}
	b.Steps = append([]gvalue.Instruction{start}, b.Steps...)
	return b
}
