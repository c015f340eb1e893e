package gvalue

import "strings"

// Bytecode is a traversal as a list of instructions: those of the source (with*, strategies), then the steps. A nested
// traversal is a *Bytecode argument.
type Bytecode struct {
	Source []Instruction
	Steps  []Instruction
}

// Instruction is one step or source modulator: its name in the language, and its arguments.
type Instruction struct {
	Op   string
	Args []any
}

// Add appends a step.
func (b *Bytecode) Add(op string, args ...any) *Bytecode {
	b.Steps = append(b.Steps, Instruction{Op: op, Args: args})
	return b
}

// Lambda is a function in a host language. It can be transmitted but is never run.
type Lambda struct {
	Language, Script string
	Args             int32 // -1: unknown
}

// Binding is a named argument of bytecode.
type Binding struct {
	Key   string
	Value any
}

// CardinalityValue is a property value with its own cardinality: Cardinality.single('x').
type CardinalityValue struct {
	Cardinality Cardinality
	Value       any
}

// Strategy is a traversal strategy: the name of its Java class, and its settings.
type Strategy struct {
	Class  string
	Config *Map
}

// Name returns the class without its package: "PartitionStrategy".
func (s *Strategy) Name() string {
	return s.Class[strings.LastIndexAny(s.Class, ".$")+1:]
}

// P is a predicate. Op is its name in the language: eq neq lt lte gt gte inside outside between within without and or
// not typeOf, and with Text: startingWith endingWith containing regex and their not.. forms.
//
// Args has one value for comparisons; two for inside, outside, between; any number for within and without (a list
// argument is already unrolled); *P for and, or, not.
type P struct {
	Op   string
	Args []any
	Text bool
}

// UnrollP converts the arguments of a predicate from a request to the form that P describes, and returns p. Clients
// send within(a, b) as a and b or as one list, and eq([a, b]) as one list or as a and b.
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

// ReduceBytecode returns the value that bytecode represents. A property value with its cardinality is sent as bytecode
// with the single instruction CardinalityValueTraversal. All other bytecode is returned unchanged.
func ReduceBytecode(b *Bytecode) any {
	if len(b.Steps) == 0 && len(b.Source) == 1 && b.Source[0].Op == "CardinalityValueTraversal" &&
		len(b.Source[0].Args) == 2 {
		if c, ok := b.Source[0].Args[0].(Cardinality); ok {
			return CardinalityValue{c, b.Source[0].Args[1]}
		}
	}
	return b
}
