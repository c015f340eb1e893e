package gvalue

import "strings"

// Bytecode is a traversal as a list of instructions: those on the source (with*, strategies), then the steps. A nested
// traversal is a *Bytecode argument.
type Bytecode struct {
	Source []Instruction
	Steps  []Instruction
}

// Instruction is one step or source modulator: its name as in the language, and its arguments.
type Instruction struct {
	Op   string
	Args []any
}

// Add appends a step.
func (b *Bytecode) Add(op string, args ...any) *Bytecode {
	b.Steps = append(b.Steps, Instruction{Op: op, Args: args})
	return b
}

// Lambda is a function in a host language. It can be carried but never run.
type Lambda struct {
	Language, Script string
	Args             int32 // -1: not known
}

// Binding is a named argument of bytecode.
type Binding struct {
	Key   string
	Value any
}

// CardinalityValue is a property value that brings its own cardinality: Cardinality.single('x').
type CardinalityValue struct {
	Cardinality Cardinality
	Value       any
}

// Strategy is a traversal strategy: the Java class that names it, and its settings.
type Strategy struct {
	Class  string
	Config *Map
}

// Name is the class without its package: "PartitionStrategy".
func (s *Strategy) Name() string {
	return s.Class[strings.LastIndexAny(s.Class, ".$")+1:]
}

// P is a predicate. Op is its name in the language: eq neq lt lte gt gte inside outside between within without and or
// not typeOf, and with Text: startingWith endingWith containing regex and their not.. forms.
//
// Args: one value for comparisons; two for inside, outside, between; any number for within and without (already
// unrolled from a list argument); *P for and, or, not.
type P struct {
	Op   string
	Args []any
	Text bool
}

// UnrollP brings the arguments of a predicate that came over the wire into the form that P describes: clients send
// within(a, b) as a and b or as one list, and eq([a, b]) as one list or as a and b. It returns p.
func UnrollP(p *P) *P {
	switch p.Op {
	case "within", "without":
		if len(p.Args) == 1 {
			switch x := p.Args[0].(type) {
			case []any:
				p.Args = x
			case *Set:
				p.Args = x.Items()
			}
		}
	case "between", "inside", "outside", "and", "or":
		if len(p.Args) == 1 {
			if l, ok := p.Args[0].([]any); ok {
				p.Args = l
			}
		}
	case "eq", "neq", "lt", "lte", "gt", "gte":
		if len(p.Args) != 1 {
			p.Args = []any{p.Args}
		}
	}
	return p
}

// ReduceBytecode gives the value that bytecode stands for: a property value with its cardinality travels as bytecode
// whose only instruction is CardinalityValueTraversal; all other bytecode is returned as it is.
func ReduceBytecode(b *Bytecode) any {
	if len(b.Steps) == 0 && len(b.Source) == 1 && b.Source[0].Op == "CardinalityValueTraversal" &&
		len(b.Source[0].Args) == 2 {
		if c, ok := b.Source[0].Args[0].(Cardinality); ok {
			return CardinalityValue{c, b.Source[0].Args[1]}
		}
	}
	return b
}
