package catalog

import (
	"slices"
	"strings"
	"sync"

	"github.com/orrerydb/orrery/core/status"
)

// Ids are compared byte by byte, and so are those of most APIs. A table's name is found without regard to case:
// "People" is also reached as "people". ContainerFold is that look-up, and Spec.FoldID keeps two tables from having
// names that differ only in case.

// foldMap has the containers of every database by their ids in lower case.
type foldMap map[string]map[string][]*Container

// folded returns the map of a state that is not changed any more. It is made at the first look-up that needs it.
type folded struct {
	once sync.Once
	m    foldMap
}

func (f *folded) of(s *state) foldMap {
	f.once.Do(func() {
		f.m = foldMap{}
		for db, m := range s.containers {
			byID := make(map[string][]*Container, len(m))
			for id, k := range m {
				l := strings.ToLower(id)
				byID[l] = append(byID[l], k)
			}
			f.m[db] = byID
		}
	})
	return f.m
}

// ContainersFold returns the containers of a database whose ids are id but for case. A missing database has none.
func (c *Catalog) ContainersFold(db, id string) []*Container {
	st := c.cur.Load()
	return st.fold.of(st)[db][strings.ToLower(id)]
}

// ContainerFold returns the container with this id, or else the only one whose id differs from it in case alone. The
// errors are those of Container.
func (c *Catalog) ContainerFold(db, id string) (*Container, error) {
	k, err := c.Container(db, id)
	if status.CodeOf(err) != status.NotFound {
		return k, err
	}
	if ks := c.ContainersFold(db, id); len(ks) == 1 {
		return ks[0], nil
	}
	return nil, err
}

// taken reports whether a container other than except must not get this id. The caller holds mu.
func (c *Catalog) taken(db, id string, foldID bool, except ...*Container) bool {
	for _, k := range c.ContainersFold(db, id) {
		if !slices.Contains(except, k) && (k.ID == id || foldID || k.FoldID) {
			return true
		}
	}
	return false
}
