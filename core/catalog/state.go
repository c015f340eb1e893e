package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/kv"
)

// state is the content of the catalog. It isn't changed after it was stored in Catalog.cur. A change makes a new state,
// which shares all but a few nodes of its tables with the old one.
type state struct {
	serial  uint64 // number of the state in this process
	account account
	version uint64 // of the catalog: 0 before the first change that counted
	byID    table[string, *database]
	byNum   table[uint32, *database]
}

type account struct {
	NextDB        uint32 `json:"nextDb"`
	NextContainer uint32 `json:"nextContainer"`
	NextGen       uint32 `json:"nextGen"`
	NextVersion   uint64 `json:"nextVersion"`
	NextResource  uint32 `json:"nextResource,omitempty"` // absent in older stores: 0 is 1
	Format        int    `json:"format,omitempty"`       // all containers have it, or a later one; absent: see Catalog.Format

	Changes []mark `json:"changes,omitempty"` // of a shared store: its last changes, see findOut
}

// firstAccount has the counters of an empty catalog.
var firstAccount = account{NextDB: 0x10000001, NextContainer: 1, NextGen: 1, NextVersion: 1, Format: kv.Format}

// database is a database with its contents. It isn't changed once it is visible.
type database struct {
	*Database
	ids     table[string, *ref] // the containers by id
	folds   table[string, *ref] // those whose id isn't in lower case, by foldKey
	numbers table[uint32, *ref] // by number, which is the order of their creation
	timed   table[uint32, *ref] // those with a flag of flagTimed, by number
	shelf   shelf               // the other resources
}

// A container's id is compared byte by byte, and so are those of most APIs. A table's name is found without regard to
// case: "People" is also reached as "people". Spec.FoldID keeps two tables from having names that differ only in case.

// foldKey orders containers by their ids in lower case. No id has the byte 0xFF, as it is UTF-8.
func foldKey(lower, id string) string { return lower + "\xff" + id }

// folded returns the containers whose ids equal id except for case.
func (d *database) folded(id string) (out []*ref) {
	lower := strings.ToLower(id)
	for r := range d.folds.from(foldKey(lower, "")) {
		if strings.ToLower(r.id) != lower {
			break
		}
		out = append(out, r)
	}
	if r, ok := d.ids.get(lower); ok && strings.ToLower(r.id) == r.id {
		out = append(out, r)
	}
	return out
}

// free returns Conflict if a container other than except prevents a container from getting this id.
func (d *database) free(ctx context.Context, c *Catalog, id string, foldID bool, except ...*ref) error {
	for _, r := range d.folded(id) {
		if slices.Contains(except, r) {
			continue
		}
		taken := r.id == id || foldID
		if !taken {
			k, err := c.definition(ctx, d, r)
			if err != nil {
				return err
			}
			taken = k.FoldID
		}
		if taken {
			return errTaken()
		}
	}
	return nil
}

// with returns the database with a container. It replaces the one with the same number.
func (d *database) with(r *ref) *database {
	n := *d
	if old, ok := n.numbers.get(r.num); ok && old.id != r.id {
		n = *n.without(old)
	}
	n.ids = n.ids.with(r.id, r)
	n.numbers = n.numbers.with(r.num, r)
	if r.flags&flagTimed != 0 {
		n.timed = n.timed.with(r.num, r)
	} else {
		n.timed = n.timed.without(r.num)
	}
	if lower := strings.ToLower(r.id); lower != r.id {
		n.folds = n.folds.with(foldKey(lower, r.id), r)
	}
	return &n
}

// without returns the database without a container.
func (d *database) without(r *ref) *database {
	n := *d
	n.ids = n.ids.without(r.id)
	n.numbers = n.numbers.without(r.num)
	n.timed = n.timed.without(r.num)
	if lower := strings.ToLower(r.id); lower != r.id {
		n.folds = n.folds.without(foldKey(lower, r.id))
	}
	return &n
}

// put adds a database. It replaces the one with the same number.
func (s *state) put(d *database) {
	s.byID = s.byID.with(d.ID, d)
	s.byNum = s.byNum.with(d.Num, d)
}

// remove removes a database with its contents.
func (s *state) remove(d *database) {
	s.byID = s.byID.without(d.ID)
	s.byNum = s.byNum.without(d.Num)
}
