package gremlin

import (
	"fmt"
	"strings"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Parse parses a script. bound says which names the request binds. Bindings have precedence over the language's tokens:
// if id is bound, it is a variable, otherwise it is T.id.
func Parse(src string, bound func(name string) bool) (*Script, error) {
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks, bound: bound, s: &Script{}}
	if err := p.script(); err != nil {
		return nil, err
	}
	return p.s, nil
}

// Fits reports whether the script, parsed with other bindings, has the same meaning with these.
func (s *Script) Fits(bound func(name string) bool) bool {
	for n, was := range s.names {
		if bound(n) != was {
			return false
		}
	}
	return true
}

// parser is a recursive descent parser. Every recursive method calls enter.
type parser struct {
	toks     []token
	i        int
	depth    int
	brackets int // that are open
	bound    func(string) bool
	s        *Script
	assigned map[string]bool
	values   bool // in the arguments of inject(): a traversal from g stands for its results
	wasRange bool // the last list came from a range: [1..3] is that list itself, not a list in a list
}

func (p *parser) peek() *token { return &p.toks[p.i] }

func (p *parser) peekAt(n int) *token {
	if p.i+n < len(p.toks) {
		return &p.toks[p.i+n]
	}
	return &p.toks[len(p.toks)-1]
}

func (p *parser) next() *token {
	t := &p.toks[p.i]
	if t.kind != tokEOF {
		p.i++
	}
	return t
}

func (p *parser) is(punct string) bool { return p.isAt(0, punct) }

func (p *parser) isAt(n int, punct string) bool {
	t := p.peekAt(n)
	return t.kind == tokPunct && t.text == punct
}

func (p *parser) accept(punct string) bool {
	if p.is(punct) {
		p.i++
		return true
	}
	return false
}

func (p *parser) expect(punct string) error {
	if p.accept(punct) {
		return nil
	}
	return p.unexpected("'" + punct + "' is expected")
}

//go:noinline // called from many places, see decision 41
func failAt(t *token, format string, args ...any) error {
	return &Error{Msg: fmt.Sprintf(format, args...), Line: int(t.line), Col: int(t.col)}
}

//go:noinline // called from many places, see decision 41
func unsupportedAt(t *token, format string, args ...any) error {
	return &Error{Msg: fmt.Sprintf(format, args...), Line: int(t.line), Col: int(t.col), Unsupported: true}
}

// unexpected reports the current token as a fault.
func (p *parser) unexpected(want string) error {
	t := p.peek()
	if t.kind == tokEOF {
		return failAt(t, "Unexpected end of the script: %s", want)
	}
	text := t.text
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	return failAt(t, "Unexpected '%s': %s", strings.ToValidUTF8(text, "?"), want)
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return failAt(p.peek(), "The script is nested too deeply (more than %d levels)", maxDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// script reads all statements. A line break ends a statement unless the next line begins with a point.
func (p *parser) script() error {
	for p.accept(";") {
	}
	for p.peek().kind != tokEOF {
		first := p.peek()
		returns := first.kind == tokIdent && first.text == "return"
		if returns {
			p.i++
		}
		if err := p.statement(); err != nil {
			return err
		}
		t := p.peek()
		if t.kind != tokEOF && !p.is(";") && !t.newline {
			return p.unexpected("the end of the statement is expected")
		}
		for p.accept(";") {
		}
		if returns && p.peek().kind != tokEOF {
			return failAt(p.peek(), "No statement may follow return")
		}
	}
	if len(p.s.Stmts) == 0 {
		return failAt(p.peek(), "The script is empty")
	}
	return nil
}

func (p *parser) statement() error {
	t := p.peek()
	st := Stmt{Line: int(t.line), Col: int(t.col)}
	if t.kind == tokIdent {
		switch t.text {
		case "if", "for", "while", "try", "import":
			return unsupportedAt(t, "The statement '%s' is not supported", t.text)
		}
		if name := p.peekAt(1); name.kind == tokIdent && !name.newline && p.isAt(2, "=") { // def x =, or int x =
			p.i++
		}
		if t = p.peek(); p.isAt(1, "=") && t.text != "g" {
			st.Assign = t.text
			p.i += 2
		}
	}
	expr, err := p.expression()
	if err != nil {
		return err
	}
	st.Expr = expr
	p.s.Stmts = append(p.s.Stmts, st)
	if st.Assign != "" {
		if p.assigned == nil {
			p.assigned = map[string]bool{}
		}
		p.assigned[st.Assign] = true
	}
	return nil
}

// expression reads the right side of a statement: a traversal from g, or any argument.
func (p *parser) expression() (any, error) {
	v, err := p.argument()
	if err != nil {
		return nil, err
	}
	if b, ok := v.(*gvalue.Bytecode); ok && len(b.Steps) == 0 && len(b.Source) == 0 {
		return "graphtraversalsource[orrery]", nil
	}
	return v, nil
}

// rootTraversal reads the text after the traversal source g: modulators, steps and optionally a terminal method.
func (p *parser) rootTraversal() (any, error) {
	b := &gvalue.Bytecode{}
	for p.is(".") {
		name := p.peekAt(1)
		if name.kind != tokIdent {
			p.i++
			return nil, p.unexpected("a step is expected")
		}
		if name.text == "tx" && len(b.Steps) == 0 {
			return p.transaction(b)
		}
		if arity, ok := terminals[name.text]; ok && len(b.Steps) > 0 {
			p.i += 2
			return p.terminal(b, name, arity)
		}
		p.i += 2
		ins, err := p.call(name)
		if err != nil {
			return nil, err
		}
		if len(b.Steps) == 0 && sourceOps[name.text] {
			b.Source = append(b.Source, ins)
		} else {
			b.Steps = append(b.Steps, ins)
		}
	}
	return b, nil
}

// transaction reads .tx().commit() and similar calls.
func (p *parser) transaction(b *gvalue.Bytecode) (any, error) {
	t := p.peekAt(1)
	if p.isAt(2, "(") && p.isAt(3, ")") && p.isAt(4, ".") && p.peekAt(5).kind == tokIdent && p.isAt(6, "(") &&
		p.isAt(7, ")") {
		op := p.peekAt(5).text
		p.i += 8
		b.Source = append(b.Source, gvalue.Instruction{Op: "tx", Args: []any{op}})
		return b, nil
	}
	return nil, failAt(t, "tx() is expected to be followed by begin(), commit() or rollback()")
}

func (p *parser) terminal(b *gvalue.Bytecode, name *token, arity int) (any, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	q := &SubQuery{Code: b, Name: name.text, Count: -1}
	if !p.is(")") {
		if arity == 0 {
			return nil, p.unexpected(name.text + "() takes no argument")
		}
		v, err := p.argument()
		if err != nil {
			return nil, err
		}
		switch n := v.(type) {
		case int32:
			q.Count = int64(n)
		case int64:
			q.Count = n
		default:
			return nil, failAt(name, "%s() takes a number", name.text)
		}
		if q.Count < 0 {
			return nil, failAt(name, "%s() takes a number that is not negative", name.text)
		}
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if name.text == "explain" {
		return nil, unsupportedAt(name, "explain() is not supported")
	}
	if name.text == "toString" {
		return gvalue.Text(b), nil
	}
	return q, nil
}

// call reads the arguments of a step whose name is already read.
func (p *parser) call(name *token) (gvalue.Instruction, error) {
	ins := gvalue.Instruction{Op: name.text}
	if !p.is("(") {
		return ins, p.unexpected("'(' is expected after the step " + name.text)
	}
	outer := p.values
	p.values = name.text == "inject"
	args, err := p.arguments("(", ")")
	p.values = outer
	if err != nil {
		return ins, err
	}
	ins.Args = args
	return ins, nil
}

// arguments reads a bracketed list separated by commas.
func (p *parser) arguments(open, closing string) ([]any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if err := p.expect(open); err != nil {
		return nil, err
	}
	p.brackets++
	defer func() { p.brackets-- }()
	if p.accept(closing) {
		return nil, nil
	}
	args := make([]any, 0, 2)
	for {
		a, err := p.argument()
		if err != nil {
			return nil, err
		}
		args = append(args, a)
		if p.accept(closing) {
			return args, nil
		}
		if !p.accept(",") {
			return nil, p.unexpected("',' or '" + closing + "' is expected")
		}
		if p.accept(closing) { // Groovy allows a trailing comma
			return args, nil
		}
	}
}

// nested reads an anonymous traversal, either after __. or from its first step.
func (p *parser) nested() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	b := &gvalue.Bytecode{}
	for {
		name := p.peek()
		if name.kind != tokIdent {
			return nil, p.unexpected("a step is expected")
		}
		p.i++
		ins, err := p.call(name)
		if err != nil {
			return nil, err
		}
		b.Steps = append(b.Steps, ins)
		if !p.is(".") {
			return b, nil
		}
		p.i++
	}
}
