package odata

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
)

// Op is a comparison operator.
type Op uint8

// The comparison operators.
const (
	Eq Op = iota
	Ne
	Gt
	Ge
	Lt
	Le
)

// comparisons is the registry of comparison operators.
var comparisons = map[string]Op{"eq": Eq, "ge": Ge, "gt": Gt, "le": Le, "lt": Lt, "ne": Ne}

// mirrored is the operator for exchanged operands.
var mirrored = [...]Op{Eq: Eq, Ne: Ne, Gt: Lt, Ge: Le, Lt: Gt, Le: Ge}

// Mirror returns the operator for exchanged operands: a op b equals b Mirror(op) a.
func Mirror(op Op) Op { return mirrored[op] }

// notImplemented are words of OData that the service recognizes and refuses: functions (followed by a parenthesis) and
// arithmetic.
var notImplemented = map[string]bool{
	"add": true, "ceiling": true, "concat": true, "contains": true, "day": true, "div": true, "endswith": true,
	"floor": true, "hour": true, "indexof": true, "isof": true, "length": true, "minute": true, "mod": true,
	"month": true, "mul": true, "replace": true, "round": true, "second": true, "startswith": true, "sub": true,
	"substring": true, "substringof": true, "tolower": true, "toupper": true, "trim": true, "year": true,
}

// NodeKind is the kind of a Node.
type NodeKind uint8

// The kinds of Node.
const (
	Or      NodeKind = iota // Args
	And                     // Args
	Not                     // Args[0]
	Compare                 // Left Op Right
	Truth                   // Left is a Boolean property or literal without a comparison
)

// Node is one node of a parsed $filter.
type Node struct {
	Kind        NodeKind
	Args        []*Node
	Op          Op
	Left, Right Operand
}

// Operand is a property (Prop != "") or a literal.
type Operand struct {
	Prop string
	Lit  value.Value
}

// Limits of a $filter. Generated filters have hundreds of comparisons, which the service accepts.
const (
	maxFilterBytes = 256 << 10
	maxDepth       = 200
)

// Parse reads $filter. The precedence from weak to strong is or, and, not, comparison. Words are case-sensitive. An
// empty text gives nil: no filter.
//
//	a eq 1 or b eq 2 and c  ->  Or(Compare(a Eq 1), And(Compare(b Eq 2), Truth(c)))
func Parse(text string) (*Node, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(text) > maxFilterBytes {
		return nil, bad("The filter is too long.")
	}
	p := &parser{lex: lexer{s: text}}
	p.advance()
	n := p.or(0)
	if p.err == nil && p.tok.kind != tokEnd {
		p.fault()
	}
	if p.err != nil {
		return nil, p.err
	}
	return n, nil
}

// parser is a recursive descent parser with one token of look-ahead. After the first fault err stays set and every
// production returns immediately.
type parser struct {
	lex lexer
	tok token
	err error
}

func (p *parser) advance() {
	if p.err == nil {
		p.tok, p.err = p.lex.next()
	}
	if p.err != nil {
		p.tok = token{}
	}
}

// fault reports the current token as unexpected.
func (p *parser) fault() *Node {
	if p.err != nil {
		return nil
	}
	if p.tok.kind == tokName && notImplemented[p.tok.text] {
		p.err = &Error{Msg: "The requested operation is not implemented on the specified resource.",
			NotImplemented: true}
	} else {
		p.err = bad("A syntax error was found in the filter.")
	}
	return nil
}

func (p *parser) word(w string) bool {
	if p.err == nil && p.tok.kind == tokName && p.tok.text == w {
		p.advance()
		return true
	}
	return false
}

func (p *parser) or(depth int) *Node {
	return p.chain(Or, "or", depth, func() *Node {
		return p.chain(And, "and", depth, func() *Node { return p.not(depth) })
	})
}

// chain reads operands joined by the same word into one n-ary node, so the depth doesn't grow with the length of the
// chain.
func (p *parser) chain(kind NodeKind, w string, depth int, operand func() *Node) *Node {
	n := operand()
	if p.err != nil || p.tok.kind != tokName || p.tok.text != w {
		return n
	}
	c := &Node{Kind: kind, Args: []*Node{n}}
	for p.word(w) {
		c.Args = append(c.Args, operand())
	}
	return c
}

func (p *parser) not(depth int) *Node {
	if depth > maxDepth {
		if p.err == nil {
			p.err = bad("The filter is nested too deeply.")
		}
		return nil
	}
	if p.word("not") {
		return &Node{Kind: Not, Args: []*Node{p.not(depth + 1)}}
	}
	return p.comparison(depth)
}

// comparison reads a parenthesised filter, a comparison, or a single operand.
func (p *parser) comparison(depth int) *Node {
	if p.err == nil && p.tok.kind == tokOpen {
		p.advance()
		n := p.or(depth + 1)
		if p.err == nil && p.tok.kind != tokClose {
			return p.fault()
		}
		p.advance()
		return p.compareGroup(n)
	}
	left, ok := p.operand()
	if !ok {
		return nil
	}
	op, is := comparisons[p.tok.text]
	if p.tok.kind != tokName || !is {
		if left.Prop == "" && left.Lit.Kind() != value.Bool {
			return p.fault()
		}
		return &Node{Kind: Truth, Left: left}
	}
	p.advance()
	right, ok := p.operand()
	if !ok {
		return nil
	}
	return &Node{Kind: Compare, Op: op, Left: left, Right: right}
}

// compareGroup accepts `(Prop) eq 1`: a single operand in parentheses may be compared.
func (p *parser) compareGroup(n *Node) *Node {
	op, is := comparisons[p.tok.text]
	if p.err != nil || n == nil || p.tok.kind != tokName || !is {
		return n
	}
	if n.Kind != Truth {
		return p.fault()
	}
	p.advance()
	right, ok := p.operand()
	if !ok {
		return nil
	}
	return &Node{Kind: Compare, Op: op, Left: n.Left, Right: right}
}

func (p *parser) operand() (Operand, bool) {
	if p.err != nil {
		return Operand{}, false
	}
	var o Operand
	ok := true
	switch p.tok.kind {
	case tokName:
		switch w := p.tok.text; {
		case w == "true" || w == "false":
			o.Lit = value.BoolOf(w == "true")
		case w == "not" || w == "and" || w == "or" || w == "null" || comparisons[w] != 0 || w == "eq":
			ok = false
		default:
			return p.property(w)
		}
	case tokNumber:
		o.Lit, ok = number(p.tok.text)
	case tokString:
		o.Lit = value.StringOf(p.tok.text)
	case tokTyped:
		o.Lit, ok = typed(p.tok.typ, p.tok.text)
	default:
		ok = false
	}
	if !ok {
		p.fault()
		return o, false
	}
	p.advance()
	return o, p.err == nil
}

// property reads a property's name. A name followed by a parenthesis is a function, which the service doesn't support.
func (p *parser) property(name string) (Operand, bool) {
	at := p.tok
	p.advance()
	if p.err == nil && p.tok.kind == tokOpen {
		p.tok = at
		p.fault()
		return Operand{}, false
	}
	return Operand{Prop: name}, p.err == nil
}

// typed reads a literal with its type in front.
func typed(typ, text string) (value.Value, bool) {
	switch typ {
	case "datetime":
		v, err := edm.ParseDateTime(text)
		return v, err == nil
	case "guid":
		return edm.ParseGUID(text)
	case "X", "binary":
		b, err := hex.DecodeString(text)
		return value.BinaryOf(value.SubtypeGeneric, b), err == nil
	}
	return value.Value{}, false
}

// number reads a numeric literal: Int32, Int64 with the suffix L, Double with a fraction, an exponent or the suffix d.
// A whole number that needs 64 bits but lacks the L is an error, as in the service.
func number(s string) (value.Value, bool) {
	body, suffix := s, byte(0)
	if c := s[len(s)-1] | 0x20; c == 'l' || c == 'd' || c == 'f' {
		body, suffix = s[:len(s)-1], c
	}
	if strings.ContainsAny(body, "xXpP_iInN") {
		return value.Value{}, false
	}
	if suffix == 'l' {
		n, err := strconv.ParseInt(body, 10, 64)
		return value.Int64Of(n), err == nil
	}
	if suffix == 0 {
		if n, err := strconv.ParseInt(body, 10, 64); err == nil {
			return value.Int32Of(int32(n)), n >= math.MinInt32 && n <= math.MaxInt32
		}
	}
	f, err := strconv.ParseFloat(body, 64)
	return value.DoubleOf(f), err == nil
}
