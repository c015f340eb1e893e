package run

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// mathExpr is a compiled expression of math(). Its result is a double.
type mathExpr func(get func(name string) (float64, error)) (float64, error)

// mathFuncs are the functions of math().
var mathFuncs = map[string]func(float64) float64{
	"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "cbrt": math.Cbrt,
	"ceil": math.Ceil, "cos": math.Cos,
	"cosh": math.Cosh, "exp": math.Exp, "expm1": math.Expm1, "floor": math.Floor, "log": math.Log, "log10": math.Log10,
	"log1p": math.Log1p, "log2": math.Log2, "sin": math.Sin, "sinh": math.Sinh, "sqrt": math.Sqrt,
	"tan": math.Tan, "tanh": math.Tanh,
	"signum": func(f float64) float64 {
		switch {
		case f > 0:
			return 1
		case f < 0:
			return -1
		}
		return f
	},
}

// mathParser reads the expression: + - * / % ^, brackets, functions, numbers, variables and _.
type mathParser struct {
	s     string
	i     int
	depth int
	vars  []string
}

func (p *mathParser) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t' || p.s[p.i] == '\n') {
		p.i++
	}
}

func (p *mathParser) fail() error {
	return errf(Compile, "The expression of math() can't be read at character %d: %.60s", p.i+1, p.s)
}

func (p *mathParser) accept(c byte) bool {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *mathParser) sum() (mathExpr, error) { return p.binary("+-", p.product) }

func (p *mathParser) product() (mathExpr, error) { return p.binary("*/%", p.unary) }

func (p *mathParser) binary(ops string, operand func() (mathExpr, error)) (mathExpr, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		p.space()
		if p.i == len(p.s) || strings.IndexByte(ops, p.s[p.i]) < 0 {
			return left, nil
		}
		op := p.s[p.i]
		p.i++
		right, err := operand()
		if err != nil {
			return nil, err
		}
		left = mathOp(op, left, right)
	}
}

func mathOp(op byte, l, r mathExpr) mathExpr {
	return func(get func(string) (float64, error)) (float64, error) {
		a, err := l(get)
		if err != nil {
			return 0, err
		}
		b, err := r(get)
		if err != nil {
			return 0, err
		}
		switch op {
		case '+':
			return a + b, nil
		case '-':
			return a - b, nil
		case '*':
			return a * b, nil
		case '%':
			return math.Mod(a, b), nil
		case '^':
			return math.Pow(a, b), nil
		}
		if b == 0 {
			return 0, errf(Runtime, "Division by zero in math()")
		}
		return a / b, nil
	}
}

func (p *mathParser) unary() (mathExpr, error) {
	if p.depth++; p.depth > 200 {
		return nil, p.fail()
	}
	defer func() { p.depth-- }()
	if p.accept('-') {
		e, err := p.unary()
		if err != nil {
			return nil, err
		}
		return func(get func(string) (float64, error)) (float64, error) {
			v, err := e(get)
			return -v, err
		}, nil
	}
	if p.accept('+') {
		return p.unary()
	}
	base, err := p.primary()
	if err != nil {
		return nil, err
	}
	if p.accept('^') {
		exp, err := p.unary()
		if err != nil {
			return nil, err
		}
		return mathOp('^', base, exp), nil
	}
	return base, nil
}

func (p *mathParser) primary() (mathExpr, error) {
	if p.accept('(') {
		e, err := p.sum()
		if err != nil {
			return nil, err
		}
		if !p.accept(')') {
			return nil, p.fail()
		}
		return e, nil
	}
	p.space()
	if text := p.number(); text != "" {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, p.fail()
		}
		return mathConst(f), nil
	}
	name := p.name()
	if name == "" {
		return nil, p.fail()
	}
	if f, ok := mathFuncs[name]; ok {
		arg, err := p.unary()
		if err != nil {
			return nil, err
		}
		return func(get func(string) (float64, error)) (float64, error) {
			v, err := arg(get)
			return f(v), err
		}, nil
	}
	switch name {
	case "pi":
		return mathConst(math.Pi), nil
	case "e":
		return mathConst(math.E), nil
	}
	if !slices.Contains(p.vars, name) {
		p.vars = append(p.vars, name)
	}
	return func(get func(string) (float64, error)) (float64, error) { return get(name) }, nil
}

func mathConst(f float64) mathExpr {
	return func(func(string) (float64, error)) (float64, error) { return f, nil }
}

// number reads digits and dots, and an exponent if it has digits. It returns "" where there is no number.
func (p *mathParser) number() string {
	digit := func(i int) bool { return i < len(p.s) && p.s[i] >= '0' && p.s[i] <= '9' }
	start := p.i
	for digit(p.i) || p.i < len(p.s) && p.s[p.i] == '.' {
		p.i++
	}
	if p.i > start && p.i+1 < len(p.s) && (p.s[p.i] == 'e' || p.s[p.i] == 'E') {
		j := p.i + 1
		if p.s[j] == '-' || p.s[j] == '+' {
			j++
		}
		for ; digit(j); j++ {
			p.i = j + 1
		}
	}
	return p.s[start:p.i]
}

// name reads letters, digits and underscores.
func (p *mathParser) name() string {
	start := p.i
	for i, r := range p.s[start:] {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		p.i = start + i + len(string(r))
	}
	return p.s[start:p.i]
}

// maxMath limits the length of an expression in bytes.
const maxMath = 64 << 10

func buildMath(c *compiler, in *inst) (step, error) {
	s, ok := in.args[0].(string)
	if !ok {
		return nil, in.argErr("an expression is expected")
	}
	if len(s) > maxMath { // its functions are nested, and take memory that nothing counts
		return nil, in.argErr("the expression is too long")
	}
	p := &mathParser{s: s}
	e, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.space(); p.i != len(p.s) {
		return nil, p.fail()
	}
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		ok := true
		v, err := e(func(name string) (float64, error) {
			i := 0
			for p.vars[i] != name {
				i++
			}
			v, have := t.v, true
			if name != "_" {
				v, have = x.scopeValue(t, name, gvalue.Last)
			}
			if !have {
				ok = false
				return 0, nil
			}
			r, have, err := turn(bs, i).applyTo(x, t, v)
			if err != nil {
				return 0, err
			}
			if !have {
				ok = false
				return 1, nil
			}
			if family(r) != famNumber {
				return 0, errf(Runtime, "The variable %s of math() must be a number, not a %s", name, typeName(r))
			}
			return toFloat(r), nil
		})
		if !ok {
			return nil, false, nil
		}
		return v, true, err
	}}, nil
}
