package compile

import "github.com/orrerydb/orrery/graphapi/gvalue"

// Patterns returns the traversals among the arguments of a match(). It replaces and(..) by what is in it, because its
// patterns may bind variables, too.
func Patterns(args []any) (out []*gvalue.Bytecode) {
	for _, a := range args {
		b, ok := a.(*gvalue.Bytecode)
		switch {
		case !ok:
		case len(b.Steps) == 1 && b.Steps[0].Op == "and":
			out = append(out, Patterns(b.Steps[0].Args)...)
		default:
			out = append(out, b)
		}
	}
	return out
}

// PatternEnds returns the variables of a pattern as('a')...as('b'). from is "" for a condition on variables, and to if
// the pattern binds none.
func PatternEnds(p *gvalue.Bytecode) (from, to string) {
	n := len(p.Steps)
	if n == 0 || p.Steps[0].Op != "as" || len(p.Steps[0].Args) != 1 {
		return "", ""
	}
	from, _ = p.Steps[0].Args[0].(string)
	if last := p.Steps[n-1]; n > 1 && last.Op == "as" && len(last.Args) == 1 {
		to, _ = last.Args[0].(string)
	}
	return from, to
}

// MatchStart returns the variable with which match() begins: the first one that no pattern binds, or the first one; ""
// if there is none.
func MatchStart(patterns []*gvalue.Bytecode) (start string) {
	bound := map[string]bool{}
	for _, p := range patterns {
		_, to := PatternEnds(p)
		bound[to] = true
	}
	for _, p := range patterns {
		from, _ := PatternEnds(p)
		if from != "" && !bound[from] {
			return from
		}
		if start == "" {
			start = from
		}
	}
	return start
}
