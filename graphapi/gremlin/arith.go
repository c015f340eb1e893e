package gremlin

// Arith is a sum or a product: terms with the operators between them. It is a list and not a tree of pairs, so a long
// one isn't deep. It is computed when the script runs, because a term may be a variable, or the result of a traversal.
type Arith struct {
	Terms     []any
	Ops       []byte // + - of a sum, * / of a product; one less than Terms
	Line, Col int    // of the first operator
}

// sum reads terms with + and - between them. Clients test a connection with 1+1.
func (p *parser) sum() (any, error) { return p.chain("+", "-", p.product) }

func (p *parser) product() (any, error) { return p.chain("*", "/", p.operand) }

func (p *parser) chain(op1, op2 string, term func() (any, error)) (any, error) {
	first, err := term()
	if err != nil {
		return nil, err
	}
	var a *Arith
	for (p.is(op1) || p.is(op2)) && !p.atBreak() {
		op := p.next()
		if a == nil {
			a = &Arith{Terms: []any{first}, Line: int(op.line), Col: int(op.col)}
		}
		v, err := term()
		if err != nil {
			return nil, err
		}
		a.Ops, a.Terms = append(a.Ops, op.text[0]), append(a.Terms, v)
	}
	if a == nil {
		return first, nil
	}
	return a, nil
}

// atBreak reports whether the next token begins a statement, because it begins a line outside of brackets.
func (p *parser) atBreak() bool { return p.depth <= 1 && p.peek().newline }
