package users

import (
	"bytes"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/rights"
)

// Principal is the user of a connection, with its rights as of its resources. A connection without one is the
// account's, or has no login.
type Principal struct {
	Name Name
	id   []byte // the user's UUID: a user that is removed and made again is another one
	Set  *rights.Set
	Root bool
	of   []source // what the rights were computed from
}

// source is a resource that rights were computed from; nil: it didn't exist.
type source struct {
	kind core.ResourceKind
	id   string
	res  *core.Resource
}

// noRights are the rights of a user that doesn't exist any more.
var noRights = rights.NewSet()

// Principal returns a user with its rights, and its document. Both are empty, without an error, if the
// user doesn't exist.
func (s Store) Principal(n Name) (*Principal, value.Value, error) {
	res, err := s.Get(core.Login, n.ID())
	if res == nil || err != nil {
		return nil, value.Value{}, err
	}
	d := value.ObjectOf(res.Body)
	p := &Principal{Name: n, id: d.Get("userId").Bytes(), of: []source{{core.Login, n.ID(), res}}}
	w := s.Walk()
	if err := w.Add(RolesOf(d)); err != nil {
		return nil, d, err
	}
	p.Set, p.Root = rights.NewSet(w.Privileges...), w.Root
	p.of = append(p.of, w.of...)
	return p, d, nil
}

// Current returns p with its rights as of now.
func (s Store) Current(p *Principal) (*Principal, error) {
	same := true
	for _, o := range p.of {
		res, err := s.Get(o.kind, o.id)
		if err != nil {
			return nil, err
		}
		if same = res == o.res; !same {
			break
		}
	}
	if same {
		return p, nil
	}
	now, _, err := s.Principal(p.Name)
	if err != nil {
		return nil, err
	}
	if now == nil || !bytes.Equal(now.id, p.id) {
		return &Principal{Name: p.Name, id: p.id, Set: noRights}, nil
	}
	return now, nil
}

// RolesOf returns the user's own roles and those that they contain, as they were found.
func (s Store) RolesOf(p *Principal) ([]rights.RoleName, error) {
	if len(p.of) == 0 || p.of[0].res == nil {
		return nil, nil
	}
	w := s.Walk()
	err := w.Add(RolesOf(value.ObjectOf(p.of[0].res.Body)))
	return w.Order, err
}

// Walk follows roles to the privileges that they grant. Each role is visited once.
type Walk struct {
	s          Store
	seen       map[rights.RoleName]bool
	Order      []rights.RoleName // as they were found
	Privileges []rights.Privilege
	of         []source
	Root       bool
}

// Walk begins a walk.
func (s Store) Walk() *Walk { return &Walk{s: s, seen: map[rights.RoleName]bool{}} }

// Add adds roles and those that they contain. Roles that don't exist grant nothing.
func (w *Walk) Add(names []rights.RoleName) error {
	for _, n := range names {
		if w.seen[n] {
			continue
		}
		w.seen[n] = true
		w.Order = append(w.Order, n)
		if ps, ok := rights.BuiltIn(n); ok {
			w.Privileges = append(w.Privileges, ps...)
			w.Root = w.Root || n == rights.RoleName{Role: "root", DB: DB}
			continue
		}
		res, err := w.s.Get(core.Role, RoleID(n))
		if err != nil {
			return err
		}
		w.of = append(w.of, source{core.Role, RoleID(n), res})
		if res == nil {
			continue
		}
		d := value.ObjectOf(res.Body)
		w.Privileges = append(w.Privileges, PrivilegesOf(d)...)
		if err := w.Add(RolesOf(d)); err != nil {
			return err
		}
	}
	return nil
}
