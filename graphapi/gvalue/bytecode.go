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

// P is a predicate. Op is its name in the language: eq neq lt lte gt gte inside outside between within without and or not
// typeOf, and with Text: startingWith endingWith containing regex and their not.. forms.
//
// Args: one value for comparisons; two for inside, outside, between; any number for within and without (already
// unrolled from a list argument); *P for and, or, not.
type P struct {
	Op   string
	Args []any
	Text bool
}
