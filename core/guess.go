package core

// A request to a store that several processes share looks its container up, which reads the version of the catalog,
// and then reads its item, together with that version again: two round trips. A request that reads one item can do
// with one. It takes the container that the name had before, and reads. If that shows the version with which the name
// had the container, the name had it during the request. Otherwise the request begins again with a look-up. As after a
// look-up, the item may be read a moment after the version.
//
// Example: a process knows that "db/c" is container 7 in version 12 of the catalog. A request for an item of "db/c"
// reads the item from container 7, and version 12 with it. If another process has created any container meanwhile, it
// reads version 13, and looks "db/c" up.
//
//	if c := e.Within(ctx).Recent("db", "c"); c != nil {
//		_, err := c.ReadInto(ctx, &it, &mem, pk, id)
//		if c.Shown() {
//			return err
//		}
//	}
//	c, err := e.Within(ctx).Container("db", "c")

// guess is what a container of Recent is taken for.
type guess struct {
	version uint64 // of the catalog
	reads   int    // that have shown it
	failed  bool   // a read hasn't
}

// Recent returns the container that a name had when this process last looked it up, for Read and ReadInto only, one
// after the other. What they return is an answer if Shown says so then. Recent returns nil if that isn't known, or if
// no other process can change the catalog: a look-up costs nothing then.
func (l Lookups) Recent(db, id string) *Container {
	if !l.e.Shared() {
		return nil
	}
	def, version := l.e.cat.Recent(db, id)
	if def == nil || version == 0 {
		return nil
	}
	c, err := l.e.container(l.ctx, def)
	if err != nil {
		return nil
	}
	c.guess = &guess{version: version}
	return c
}

// Shown reports whether what was read from the container is an answer: all reads have shown that the name was the
// container's. It is true for a container that was looked up.
func (c *Container) Shown() bool { return c.guess == nil || c.guess.reads > 0 && !c.guess.failed }

// shown takes note of a read.
func (c *Container) shown(m *Mem) bool {
	g := c.guess
	switch {
	case g == nil:
		return true
	case m.Shows(g.version):
		g.reads++
		return true
	}
	g.failed = true
	return false
}
