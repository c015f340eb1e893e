package run

// SpillEarly makes steps that can write to temporary files write each value before they keep the next one.
func (g *Graph) SpillEarly() { g.early = true }
