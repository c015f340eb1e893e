package sql

type predFn func(f *frame) any

func (c *compiler) predicate(p *program) predFn { return nil }
