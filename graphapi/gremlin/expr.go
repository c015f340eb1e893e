package gremlin

// Arith is a sum or a product: terms with the operators between them. It is a list and not a tree of pairs, so a long
// one isn't deep. It is computed when the script runs, because a term may be a variable, or the result of a traversal.
type Arith struct {
	Terms     []any
	Ops       []byte // + - of a sum, * / % of a product; one less than Terms
	Line, Col int    // of the first operator
}

// Expr is another expression of Groovy, which is computed when the script runs too.
//
//	Op                  Args
//	== != < <= > >= <=> two values; "in": a value and a collection
//	&& ||               two or more conditions, of which no more are computed than are needed
//	! -                 one value
//	?                   a condition and two values of which one is computed; a value may be a traversal
//	?:                  two values of which the second is computed if the first one isn't true
//	[]                  a collection or a text, and an index or a key
//	as                  a value, and the type in Name
//	. ?.                an object and the arguments of its method Name
//	field ?field        an object, whose property is Name
//	static              the arguments of the function Name, "Math.abs"
type Expr struct {
	Op, Name  string
	Args      []any
	Line, Col int
}

// maxCalls limits the calls on the result of each other, because they are computed recursively.
const maxCalls = 50

func exprAt(t *token, op, name string, args ...any) *Expr {
	return &Expr{Op: op, Name: name, Args: args, Line: int(t.line), Col: int(t.col)}
}

// condition reads a ? b : c and a ?: b.
func (p *parser) condition() (any, error) {
	v, err := p.logic("||", p.both)
	if err != nil {
		return nil, err
	}
	op := p.peek()
	switch {
	case p.accept("?:"):
		other, err := p.argument()
		return exprAt(op, "?:", "", v, other), err
	case p.accept("?"):
		then, err := p.argument()
		if err != nil {
			return nil, err
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		other, err := p.argument()
		return exprAt(op, "?", "", v, then, other), err
	}
	return v, nil
}

func (p *parser) both() (any, error) { return p.logic("&&", p.equality) }

// logic reads terms with && or || between them.
func (p *parser) logic(op string, term func() (any, error)) (any, error) {
	first, err := term()
	if err != nil || !p.is(op) {
		return first, err
	}
	e := exprAt(p.peek(), op, "", first)
	for p.accept(op) {
		v, err := term()
		if err != nil {
			return nil, err
		}
		e.Args = append(e.Args, v)
	}
	return e, nil
}

func (p *parser) equality() (any, error) { return p.pair(p.relation, "==", "!=", "<=>") }

func (p *parser) relation() (any, error) { return p.pair(p.span, "<", "<=", ">", ">=", "in") }

// pair reads two terms with one of ops between them, or one.
func (p *parser) pair(term func() (any, error), ops ...string) (any, error) {
	a, err := term()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	for _, op := range ops {
		if t.text != op || t.kind != tokPunct && (t.kind != tokIdent || t.newline || p.isAt(1, "(")) {
			continue
		}
		p.i++
		b, err := term()
		return exprAt(t, op, "", a, b), err
	}
	return a, nil
}

// span reads a sum or a range.
func (p *parser) span() (any, error) {
	v, err := p.sum()
	if err == nil && p.is("..") {
		return p.rangeTo(v)
	}
	return v, err
}

// sum reads terms with + and - between them. Clients test a connection with 1+1.
func (p *parser) sum() (any, error) { return p.chain("+-", p.product) }

func (p *parser) product() (any, error) { return p.chain("*/%", p.unary) }

func (p *parser) chain(ops string, term func() (any, error)) (any, error) {
	first, err := term()
	if err != nil {
		return nil, err
	}
	var a *Arith
	for p.isOneOf(ops) && !p.atBreak() {
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

// isOneOf reports whether the next token is one of the characters of ops.
func (p *parser) isOneOf(ops string) bool {
	for i := range len(ops) {
		if p.is(ops[i : i+1]) {
			return true
		}
	}
	return false
}

// atBreak reports whether the next token begins a statement, because it begins a line outside of brackets.
func (p *parser) atBreak() bool { return p.brackets == 0 && p.peek().newline }

// unary reads !a and -a.
func (p *parser) unary() (any, error) {
	t := p.peek()
	if !p.isOneOf("!-+") {
		return p.postfix()
	}
	if n := p.peekAt(1); t.text != "!" && (n.kind == tokNumber || n.kind == tokIdent && n.text == "Infinity") {
		return p.signed()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.i++
	v, err := p.unary()
	if err != nil || t.text == "+" {
		return v, err
	}
	return exprAt(t, t.text, "", v), nil
}

// postfix reads a value with the calls and indexes after it, and a type after as.
func (p *parser) postfix() (any, error) {
	v, err := p.operand()
	for n := 0; err == nil && hasMethods(v); n++ {
		t, name := p.peek(), p.peekAt(1)
		switch {
		case n == maxCalls:
			return nil, failAt(t, "There are more than %d calls on one value", maxCalls)
		case p.is("[") && !p.atBreak():
			v, err = p.index(v)
		case (p.is(".") || p.is("?.")) && name.kind == tokIdent:
			p.i += 2
			e := exprAt(name, t.text, name.text, v)
			if p.is("{") {
				return nil, unsupportedAt(name, "Closures are not supported")
			}
			if v = e; !p.is("(") {
				e.Op = map[string]string{".": "field", "?.": "?field"}[t.text]
				continue
			}
			var args []any
			args, err = p.arguments("(", ")")
			e.Args = append(e.Args, args...)
		case t.kind == tokIdent && t.text == "as" && name.kind == tokIdent && !t.newline:
			p.i += 2
			v = exprAt(t, "as", name.text, v)
		default:
			return v, nil
		}
	}
	return v, err
}

func (p *parser) index(of any) (any, error) {
	t := p.peek()
	at, err := p.bracketed()
	if err != nil {
		return nil, err
	}
	return exprAt(t, "[]", "", of, at), p.expect("]")
}

// bracketed reads an opening bracket and the value after it.
func (p *parser) bracketed() (any, error) {
	p.i++
	p.brackets++
	defer func() { p.brackets-- }()
	return p.argument()
}

// hasMethods reports whether a value may be followed by a call, unlike a traversal, a predicate or a token.
func hasMethods(v any) bool {
	switch v.(type) {
	case Var, *Arith, *Expr, *SubQuery, Now, NewUUID:
		return true
	}
	return isLiteral(v)
}
