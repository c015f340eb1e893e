package expr

import "github.com/orrerydb/orrery/internal/regex"

// Match reports whether re matches b. If the run ends during the match, the result is meaningless and Cut returns the
// error.
func (r *Run) Match(p *Pattern, b []byte) bool {
	re := p.re
	if re == nil {
		return r.matchBack(p, b)
	}
	if r == nil {
		return re.Match(b)
	}
	ok, err := regex.Match(re, b, r.ctx)
	r.Fail(err)
	return ok
}

// Fail makes Cut return err: for a function that can't return one itself. The first error stays.
func (r *Run) Fail(err error) {
	if r != nil && r.cut == nil {
		r.cut = err
	}
}

// Cut returns the error of a run that ended during a Match, or was given to Fail; else nil.
func (r *Run) Cut() error {
	if r == nil {
		return nil
	}
	return r.cut
}

// findAll is re.FindAllSubmatchIndex(b, most). For a long text it stops when the run has ended.
func (r *Run) findAll(p *Pattern, b []byte, most int) ([][]int, error) {
	re := p.re
	if re == nil {
		return r.findBack(p, b, most)
	}
	if r == nil {
		return re.FindAllSubmatchIndex(b, most), nil
	}
	out, err := regex.FindAll(re, b, most, r.ctx)
	r.Fail(err)
	return out, err
}
