// Package rights says what a user of the MongoDB API may do: actions on resources, and the roles that grant them. It
// knows neither commands nor the store.
//
// Example: a user has the role readWrite on database shop. find on shop.orders asks for the action find on the resource
// {db: "shop", collection: "orders"}. The role grants find on {db: "shop", collection: ""}, which are all collections
// of shop except those whose names begin with "system.". So the command may run, and one on shop.system.profile may
// not.
package rights

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/few"
)

// Resource is what actions are granted on, and what they are asked for.
type Resource struct {
	// DB and Collection name a collection. Granted with an empty Collection it stands for the database and all of its
	// normal collections, with an empty DB for the collection in all databases, and with both empty for all databases
	// but local and config, and all normal collections. Asked for with an empty Collection it is the database itself.
	DB, Collection string
	Cluster        bool // the deployment
	Any            bool // everything; only granted
}

// Privilege is a resource with the actions on it.
type Privilege struct {
	Resource Resource
	Actions  []string
}

// RoleName names a role. A role is known in its database, and those of admin may grant rights on all of them.
type RoleName struct{ Role, DB string }

// String returns "role@db".
func (n RoleName) String() string { return n.Role + "@" + n.DB }

// set is a set of actions.
type set map[string]struct{}

func (s set) has(action string) bool {
	_, ok := s[action]
	return ok || s.all()
}

// anyAction is the action that contains all others.
const anyAction = "anyAction"

func (s set) all() bool {
	_, ok := s[anyAction]
	return ok
}

// Set is what a user may do: the union of privileges. It isn't changed after it was made.
type Set struct {
	of map[Resource]set
}

// NewSet returns the union of privileges.
func NewSet(ps ...Privilege) *Set {
	s := &Set{of: map[Resource]set{}}
	for _, p := range ps {
		have := s.of[p.Resource]
		if have == nil {
			have = set{}
			s.of[p.Resource] = have
		}
		for _, a := range p.Actions {
			have[a] = struct{}{}
		}
	}
	return s
}

// Privileges returns the privileges of the set, one for each resource, in order.
func (s *Set) Privileges() []Privilege {
	var out []Privilege
	for r, have := range s.of {
		p := Privilege{Resource: r}
		for a := range have {
			p.Actions = append(p.Actions, a)
		}
		slices.Sort(p.Actions)
		out = append(out, p)
	}
	few.Sort(out, func(a, b Privilege) int { return strings.Compare(a.Resource.key(), b.Resource.key()) })
	return out
}

func (r Resource) key() string {
	switch {
	case r.Any:
		return "3"
	case r.Cluster:
		return "2"
	}
	return "1" + r.DB + "\x00" + r.Collection
}

// internal reports whether a database is one that a grant on all databases doesn't contain.
func internal(db string) bool { return db == "local" || db == "config" }

// system reports whether a collection is one that a grant on a whole database doesn't contain.
func System(collection string) bool { return strings.HasPrefix(collection, "system.") }

// Allows reports whether the set grants an action on a resource.
func (s *Set) Allows(r Resource, action string) bool {
	if s.of[Resource{Any: true}].has(action) {
		return true
	}
	if r.Cluster {
		return s.of[r].has(action)
	}
	if s.of[r].has(action) {
		return true
	}
	if r.Collection != "" && s.of[Resource{Collection: r.Collection}].has(action) {
		return true
	}
	if System(r.Collection) {
		return false
	}
	return s.of[Resource{DB: r.DB}].has(action) || !internal(r.DB) && s.of[Resource{}].has(action)
}

// Sees reports whether the set grants anything in a database: then its name may be shown.
func (s *Set) Sees(db string) bool {
	for r := range s.of {
		if r.Any || !r.Cluster && (r.DB == db || r.DB == "" && r.Collection == "") {
			return true
		}
	}
	return false
}

// SeesCollection reports whether the set grants anything on a collection: then its name may be shown.
func (s *Set) SeesCollection(db, name string) bool {
	for r := range s.of {
		switch {
		case r.Any, !r.Cluster && r.Collection == name && (r.DB == db || r.DB == ""):
			return true
		case !r.Cluster && r.Collection == "" && (r.DB == db || r.DB == "") && !System(name):
			return true
		}
	}
	return false
}

// Contains reports whether the set grants all of a privilege.
func (s *Set) Contains(p Privilege) bool {
	for _, a := range p.Actions {
		if !s.of[p.Resource].has(a) && !s.of[Resource{Any: true}].has(a) {
			return false
		}
	}
	return true
}
