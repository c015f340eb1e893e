package run

import (
	"strings"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/compile"
)

// maxNesting limits nested traversals in bytecode. The parser limits those in scripts.
const maxNesting = 120

// compiler turns instructions into steps. Variables are resolved before.
type compiler struct {
	x         *exec
	binds     map[string]any
	depth     int
	steps     int
	labelled  bool      // in where() and match(): as() at the ends of a condition refers to labels
	bodyDepth int       // nesting of repeat() bodies; 0: none
	probes    *[]*probe // only in a profiled traversal
	text      string    // of the script
	config    *compile.Config
	orders    []compile.Order // of the traversal being compiled
	order     compile.Order   // how the results of the traversal being compiled are read; never AsAtEnd
	want      int             // how many results of the request's traversal are needed; 0: all
}

// inst is an instruction with its modulators.
type inst struct {
	op    string
	args  []any
	mods  []gvalue.Instruction
	tr    *traversal           // the traversal to which the step will be added
	root  bool                 // the first step of the request's traversal
	rest  []gvalue.Instruction // the steps after it
	order compile.Order        // how the results of the step are read; never AsAtEnd
}

// def is one step of the language: its number of arguments (max -1: any number), its modulators, and the function that
// makes it. A def without build is a step that is known but not supported.
type def struct {
	name     string
	min, max int
	mods     string
	build    func(c *compiler, in *inst) (step, error)
}

// registry holds every step by name; see registry.go.
var registry map[string]*def

// argErr reports wrong arguments of a step.
//
//go:noinline // called from many places, see decision 41
func (in *inst) argErr(what string) error {
	return errf(Compile, "The arguments of the step %s() are wrong: %s", in.op, what)
}

func (c *compiler) enter() error {
	if c.depth++; c.depth > maxNesting {
		return errf(Compile, "The traversal is nested too deeply")
	}
	return nil
}

// traversal compiles a nested traversal.
func (c *compiler) traversal(b *gvalue.Bytecode) (*traversal, error) {
	return c.compile(b.Steps, false)
}

// compile makes the steps of ins.
func (c *compiler) compile(ins []gvalue.Instruction, root bool) (*traversal, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer func() { c.depth-- }()
	tr := newTraversal()
	ins, err := compile.Infix(ins)
	if err != nil {
		return nil, errf(Compile, "%s", err.Error())
	}
	outer := c.orders
	c.orders = compile.Orders(ins)
	defer func() { c.orders = outer }()
	if root && c.depth == 1 {
		c.probes = nil
		if profiled(ins) {
			c.probes = new([]*probe)
		}
	}
	for i := 0; i < len(ins); {
		n, err := c.one(tr, ins[i:], root && i == 0)
		if err != nil {
			return nil, err
		}
		if c.probes != nil && c.depth == 1 && i+n < len(ins) {
			p := &probe{op: ins[i].Op, in: ins[i]}
			*c.probes = append(*c.probes, p)
			tr.add(p)
		}
		i += n
	}
	return tr, nil
}

// orderFor returns how the results of a step are read. rest are the steps after it in the traversal being compiled.
func (c *compiler) orderFor(rest []gvalue.Instruction) compile.Order {
	if o := c.orders[len(c.orders)-1-len(rest)]; o != compile.AsAtEnd {
		return o
	}
	return c.order
}

// one compiles the first step of ins with its modulators, and returns the number of instructions used.
func (c *compiler) one(tr *traversal, ins []gvalue.Instruction, first bool) (int, error) {
	op := ins[0].Op
	if c.steps++; c.steps > maxSteps {
		return 0, errf(Compile, "The traversal has more than %d steps", maxSteps)
	}
	order := c.order
	defer func() { c.order = order }()
	if compile.Mutates(op) {
		c.x.writes, c.x.ends.off = true, true
	}
	switch op {
	case "V", "E":
		return c.source(tr, ins, first)
	case "repeat", "until", "emit", "times":
		return c.repeat(tr, ins)
	}
	d, ok := registry[op]
	if !ok {
		return 0, errf(Compile, "Unable to find any method '%s'", op)
	}
	if d.build == nil {
		return 0, errf(Unsupported, "The step %s() is not supported", op)
	}
	if first && !startSteps[op] {
		return 0, errf(Compile, "The step %s() can't start a traversal", op)
	}
	in := &inst{op: op, args: ins[0].Args, tr: tr, root: first}
	if c.bodyDepth == c.depth && (op == "inject" || op == "cap") {
		return 0, errf(Compile, "The parent of %s()-step can not be repeat()-step", op)
	}
	if len(in.args) < d.min || d.max >= 0 && len(in.args) > d.max {
		return 0, errf(Compile, "The step %s() is called with %d argument(s)", op, len(in.args))
	}
	mods, labels, n := modulators(ins[1:], d.mods)
	in.mods, in.rest, in.order = mods, ins[1+n:], c.orderFor(ins[1+n:])
	if c.order = compile.Partly; compile.HandsOn(op) {
		c.order = in.order
	}
	s, err := d.build(c, in)
	if err != nil {
		return 0, err
	}
	switch b := s.(type) {
	case *orderStep:
		b.top = topOf(mods, ins[1+n:])
	case *groupStep:
		b.last = len(ins) == 1+n
		b.unfolds = !b.last && ins[1+n].Op == "unfold" && len(labels) == 0
	}
	if s != nil {
		tr.add(s)
	}
	for _, l := range labels {
		if err := c.addLabels(tr, l); err != nil {
			return 0, err
		}
	}
	return 1 + n, nil
}

// maxTop is the largest limit() for which an order() drops the traversers beyond it.
const maxTop = 10_000

// topOf returns how many traversers of an order() are needed if rest follows; 0: all.
func topOf(mods, rest []gvalue.Instruction) int {
	for _, m := range mods {
		for _, a := range m.Args {
			if a == gvalue.Shuffle {
				return 0
			}
		}
	}
	if len(rest) == 0 {
		return 0
	}
	if n, ok := compile.UpTo(rest[0]); ok && n <= maxTop {
		return n
	}
	return 0
}

// startSteps are the steps that may begin a traversal of the source.
var startSteps = map[string]bool{"V": true, "E": true, "addV": true, "addE": true, "inject": true, "mergeV": true,
	"mergeE": true, "union": true}

// modulators returns the instructions after a step that belong to it. An as() among them is moved after the step.
func modulators(ins []gvalue.Instruction, names string) (mods, labels []gvalue.Instruction, n int) {
	if names == "" {
		return nil, nil, 0
	}
	pending := 0
	for i, in := range ins {
		if in.Op == "as" {
			pending++
			continue
		}
		if !hasWord(names, in.Op) {
			break
		}
		labels = append(labels, ins[i-pending:i]...)
		pending = 0
		if mods == nil {
			mods = make([]gvalue.Instruction, 0, len(ins)-i)
		}
		mods = append(mods, in)
		n = i + 1
	}
	return mods, labels, n
}

func hasWord(list, w string) bool {
	for list != "" {
		head, rest, _ := strings.Cut(list, " ")
		if head == w {
			return true
		}
		list = rest
	}
	return false
}

func (c *compiler) addLabels(tr *traversal, as gvalue.Instruction) error {
	labels, err := stringsOf(as.Args, "as")
	if err != nil {
		return err
	}
	tr.add(&effectStep{f: func(_ *exec, t *trav) error {
		for _, l := range labels {
			t.label(l)
		}
		return nil
	}})
	return nil
}

// stringsOf returns the arguments as strings, or an error if one isn't a string.
func stringsOf(args []any, op string) ([]string, error) {
	out := make([]string, 0, len(args))
	for _, a := range args {
		switch s := a.(type) {
		case string:
			out = append(out, s)
		case []any:
			more, err := stringsOf(s, op)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case nil:
		default:
			return nil, errf(Compile, "The step %s() takes strings, not %s", op, typeName(a))
		}
	}
	return out, nil
}

// child compiles an argument that must be a traversal.
func (c *compiler) child(in *inst, a any) (*traversal, error) {
	switch b := a.(type) {
	case *gvalue.Bytecode:
		return c.traversal(b)
	case *gvalue.Lambda:
		return nil, errf(Unsupported, "Lambdas are not supported")
	}
	return nil, in.argErr("a traversal is expected, not " + typeName(a))
}

func (c *compiler) children(in *inst) ([]*traversal, error) {
	out := make([]*traversal, 0, len(in.args))
	for _, a := range in.args {
		tr, err := c.child(in, a)
		if err != nil {
			return nil, err
		}
		out = append(out, tr)
	}
	return out, nil
}

// bys compiles the by() modulators of a step and ignores other modulators.
func (c *compiler) bys(in *inst) ([]*by, error) {
	var out []*by
	for _, m := range in.mods {
		if m.Op != "by" {
			continue
		}
		b, err := c.by(m.Args)
		if err != nil {
			return nil, err
		}
		b.null = c.config.Productive(m.Args)
		out = append(out, b)
	}
	return out, nil
}

func (c *compiler) by(args []any) (*by, error) {
	b := &by{order: gvalue.Asc}
	if len(args) > 2 {
		return nil, errf(Compile, "by() is called with %d arguments", len(args))
	}
	for i, a := range args {
		switch v := a.(type) {
		case string:
			b.kind, b.key = byProperty, v
		case gvalue.T:
			b.kind, b.tok = byToken, v
		case gvalue.Column:
			b.kind, b.col = byColumn, v
		case gvalue.Order:
			b.order = v
		case *gvalue.Bytecode:
			tr, err := c.traversal(v)
			if err != nil {
				return nil, err
			}
			b.kind, b.tr = byTraversal, tr
		case nil:
		case *gvalue.Lambda:
			return nil, errf(Unsupported, "Lambdas are not supported")
		default:
			return nil, errf(Compile, "by() can't be called with a %s", typeName(a))
		}
		if _, isOrder := a.(gvalue.Order); i == 1 && !isOrder {
			return nil, errf(Compile, "The second argument of by() is an order")
		}
	}
	return b, nil
}

// oneBy compiles the by() modulator of a step that accepts at most one; identity if there is none.
func (c *compiler) oneBy(in *inst) (*by, error) {
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	switch len(bs) {
	case 0:
		return &by{order: gvalue.Asc}, nil
	case 1:
		return bs[0], nil
	}
	return nil, manyBys(in.op)
}

// manyBys is the error for a second by(), with TinkerPop's text: "Dedup step can only have one by modulator".
func manyBys(op string) error {
	return errf(Compile, "%s step can only have one by modulator", strings.ToUpper(op[:1])+op[1:])
}

// turn returns the by() for the i-th value of a step that uses them in rotation.
func turn(bs []*by, i int) *by {
	if len(bs) == 0 {
		return identityBy
	}
	return bs[i%len(bs)]
}

var identityBy = &by{order: gvalue.Asc}

// predicateOf returns the predicate of an argument: a P, or equality with a value.
func (c *compiler) predicateOf(a any) (*predicate, error) {
	switch p := a.(type) {
	case *gvalue.P:
		return c.compileP(p)
	case *gvalue.Bytecode:
		return nil, errf(Compile, "A predicate or a value is expected, not a traversal")
	case *gvalue.Lambda:
		return nil, errf(Unsupported, "Lambdas are not supported")
	}
	return eqPredicate(a), nil
}

// scopeOf separates a leading Scope from the arguments.
func scopeOf(args []any) (gvalue.Scope, []any) {
	if len(args) > 0 {
		if s, ok := args[0].(gvalue.Scope); ok {
			return s, args[1:]
		}
	}
	return gvalue.Global, args
}

// intArg reads an integer argument.
func (in *inst) intArg(a any) (int64, error) {
	if n, ok := gvalue.Integer(a); ok {
		return n, nil
	}
	if f, ok := a.(float64); ok && f == float64(int64(f)) { // JavaScript has no integers
		return int64(f), nil
	}
	return 0, in.argErr("an integer is expected, not " + typeName(a))
}

// flatten replaces a single collection among the arguments of within() by its elements.
func flatten(args []any) []any {
	if len(args) == 1 && isCollection(args[0]) {
		return listOf(args[0])
	}
	return args
}
