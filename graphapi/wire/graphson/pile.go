package graphson

// pile collects the elements of nested lists, of which the inner ones end first. Each list gets exactly the memory that
// it needs, from blocks that several lists share. The zero pile is ready to use.
//
// Example: [1, [2, 3], 4]. The outer list begins at 0 and adds 1. The inner one begins at 1, adds 2 and 3, and takes
// them off when it ends. Then the outer one adds the inner list and 4, and takes three elements off.
type pile[T any] struct {
	open []T // the elements of the lists that haven't ended
	free []T // the rest of the current block
}

// pileBlock is the size of a block in elements.
const pileBlock = 8

// begin returns where a list begins. Its elements are added with add.
func (p *pile[T]) begin() int { return len(p.open) }

func (p *pile[T]) add(v T) {
	if p.open == nil {
		p.open = make([]T, 0, pileBlock)
	}
	p.open = append(p.open, v)
}

// end returns the list that has begun at a position.
func (p *pile[T]) end(begin int) []T {
	n := len(p.open) - begin
	if n > len(p.free) {
		p.free = make([]T, max(n, pileBlock))
	}
	l := p.free[:n:n]
	p.free = p.free[n:]
	copy(l, p.open[begin:])
	p.open = p.open[:begin]
	return l
}
