package mongoapi

import (
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/rights"
	"github.com/orrerydb/orrery/mongoapi/users"
)

var (
	createRoleArguments = args.Set{"privileges": args.Array, "roles": args.Array,
		"authenticationRestrictions": args.Array}
	rolesInfoArguments = args.Set{"showPrivileges": args.Any, "showBuiltinRoles": args.StrictBool,
		"showAuthenticationRestrictions": args.StrictBool}
	privilegesArguments = args.Set{"privileges": args.Array}
)

// missingRole is the error of a command about a role that doesn't exist.
func missingRole(n rights.RoleName) error {
	return merr.New(merr.RoleNotFound, "Role '%s' not found", n)
}

// ownRole reads the name of the role that a command changes, which can't be a built-in one.
func (r *request) ownRole() (rights.RoleName, error) {
	name, err := r.nameArg()
	n := rights.RoleName{Role: name, DB: r.db}
	if err != nil {
		return n, err
	}
	if _, ok := rights.BuiltIn(n); ok {
		return n, merr.New(merr.InvalidRoleModification, "%s is a built-in role and cannot be modified", n)
	}
	return n, nil
}

// readPrivileges reads the argument privileges. A role of another database than admin has rights only there.
func (r *request) readPrivileges() ([]rights.Privilege, error) {
	out := []rights.Privilege{}
	for _, v := range value.Elements(args.Given(r.body, "privileges")) {
		p, err := users.ReadPrivilege(v)
		if err != nil {
			return nil, err
		}
		if r.db != users.DB && (p.Resource.Cluster || p.Resource.Any || p.Resource.DB != r.db) {
			return nil, merr.New(merr.InvalidRoleModification,
				"Roles on the '%s' database cannot be granted privileges "+
					"that target other databases or the cluster", r.db)
		}
		out = append(out, p)
	}
	return out, nil
}

// checkContained refuses roles of other databases in a role of a database other than admin, and cycles.
func (r *request) checkContained(n rights.RoleName, roles []rights.RoleName) error {
	for _, c := range roles {
		if n.DB != users.DB && c.DB != n.DB {
			return merr.New(merr.InvalidRoleModification,
				"Roles on the '%s' database cannot be granted roles from other databases", n.DB)
		}
		w := r.users().Walk()
		if err := w.Add([]rights.RoleName{c}); err != nil {
			return err
		}
		if slices.Contains(w.Order, n) {
			return merr.New(merr.InvalidRoleModification,
				"Granting %s to %s would introduce a cycle in the role graph", c, n)
		}
	}
	return nil
}

// privilegeList returns privileges as the value of a document's field.
func privilegeList(ps []rights.Privilege) value.Value {
	at, b := bson.Begin(nil)
	return value.ObjectOf(bson.End(users.AppendPrivileges(b, "privileges", ps), at)).Get("privileges")
}

func createRole(r *request, dst []byte) ([]byte, error) {
	n, err := r.ownRole()
	if err != nil {
		return dst, err
	}
	for _, f := range []string{"privileges", "roles"} {
		if !args.Given(r.body, f).IsDefined() {
			return dst, merr.New(merr.MissingField, "BSON field 'createRole.%s' is missing but a required field", f)
		}
	}
	if err := r.checkRestrictions(); err != nil {
		return dst, err
	}
	ps, err := r.readPrivileges()
	if err != nil {
		return dst, err
	}
	roles, err := r.readRoles(r.body.Get("roles"))
	if err == nil {
		err = r.checkContained(n, roles)
	}
	if err != nil {
		return dst, err
	}
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "_id", users.RoleID(n))
	b = bson.AppendString(b, "role", n.Role)
	b = bson.AppendString(b, "db", n.DB)
	b = value.AppendElement(b, "privileges", privilegeList(rights.NewSet(ps...).Privileges()))
	b = users.AppendRoles(b, "roles", roles)
	err = r.users().Add(r.ctx, core.Role, users.RoleID(n), bson.End(b, at))
	if status.Is(err, status.Conflict) {
		err = merr.New(merr.RoleExists, "Role \"%s\" already exists", n)
	}
	return dst, err
}

// alterRole changes the document of a role.
func (r *request) alterRole(n rights.RoleName, change func(old value.Value) (value.Value, error)) error {
	err := r.users().Alter(r.ctx, core.Role, users.RoleID(n), change)
	if errors.Is(err, users.ErrGone) {
		return missingRole(n)
	}
	return err
}

func updateRole(r *request, dst []byte) ([]byte, error) {
	n, err := r.ownRole()
	if err != nil {
		return dst, err
	}
	if err := r.checkRestrictions(); err != nil {
		return dst, err
	}
	fields := map[string]value.Value{}
	if args.Given(r.body, "privileges").IsDefined() {
		ps, err := r.readPrivileges()
		if err != nil {
			return dst, err
		}
		fields["privileges"] = privilegeList(rights.NewSet(ps...).Privileges())
	}
	if v := args.Given(r.body, "roles"); v.IsDefined() {
		roles, err := r.readRoles(v)
		if err == nil {
			err = r.checkContained(n, roles)
		}
		if err != nil {
			return dst, err
		}
		fields["roles"] = roleList(roles)
	}
	if len(fields) == 0 {
		return dst, merr.New(merr.BadValue, "Must specify at least one field to update in updateRole")
	}
	return dst, r.alterRole(n, func(old value.Value) (value.Value, error) { return replaced(old, fields), nil })
}

// changeContained is grantRolesToRole and revokeRolesFromRole.
func changeContained(r *request, dst []byte) ([]byte, error) {
	n, err := r.ownRole()
	if err != nil {
		return dst, err
	}
	roles, err := r.requiredRoles()
	if err != nil {
		return dst, err
	}
	grant := r.name == "grantRolesToRole"
	if grant {
		if err := r.checkContained(n, roles); err != nil {
			return dst, err
		}
	}
	return dst, r.alterRole(n, func(old value.Value) (value.Value, error) {
		return replaced(old, map[string]value.Value{"roles": roleList(merged(users.RolesOf(old), roles, grant))}), nil
	})
}

// changePrivileges is grantPrivilegesToRole and revokePrivilegesFromRole.
func changePrivileges(r *request, dst []byte) ([]byte, error) {
	n, err := r.ownRole()
	if err != nil {
		return dst, err
	}
	if v := args.Given(r.body, "privileges"); !v.IsDefined() || v.Len() == 0 {
		return dst, merr.New(merr.BadValue, "%s command requires a non-empty \"privileges\" array", r.name)
	}
	ps, err := r.readPrivileges()
	if err != nil {
		return dst, err
	}
	return dst, r.alterRole(n, func(old value.Value) (value.Value, error) {
		have := users.PrivilegesOf(old)
		if r.name == "grantPrivilegesToRole" {
			have = append(have, ps...)
		} else {
			have = minus(have, ps)
		}
		return replaced(old,
			map[string]value.Value{"privileges": privilegeList(rights.NewSet(have...).Privileges())}), nil
	})
}

// minus returns privileges without the actions of others.
func minus(have, others []rights.Privilege) []rights.Privilege {
	var out []rights.Privilege
	for _, p := range have {
		for _, o := range others {
			if o.Resource == p.Resource {
				p.Actions = slices.DeleteFunc(slices.Clone(p.Actions),
					func(a string) bool { return slices.Contains(o.Actions, a) })
			}
		}
		if len(p.Actions) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// revokeEverywhere removes roles from the users and roles that have them. A role that is removed first would come back
// with its grants if another one of its name is made.
func (r *request) revokeEverywhere(gone []rights.RoleName) error {
	for _, kind := range []core.ResourceKind{core.Login, core.Role} {
		all, err := r.users().All(kind)
		if err != nil {
			return err
		}
		for _, res := range all {
			has := func(n rights.RoleName) bool { return slices.Contains(gone, n) }
			if !slices.ContainsFunc(users.RolesOf(value.ObjectOf(res.Body)), has) {
				continue
			}
			err := r.users().Alter(r.ctx, kind, res.ID, func(old value.Value) (value.Value, error) {
				left := merged(users.RolesOf(old), gone, false)
				return replaced(old, map[string]value.Value{"roles": roleList(left)}), nil
			})
			if err != nil && !errors.Is(err, users.ErrGone) {
				return err
			}
		}
	}
	return nil
}

func dropRole(r *request, dst []byte) ([]byte, error) {
	n, err := r.ownRole()
	if err != nil {
		return dst, err
	}
	res, err := r.users().Get(core.Role, users.RoleID(n))
	if err != nil {
		return dst, err
	}
	if res == nil {
		return dst, missingRole(n)
	}
	if err := r.revokeEverywhere([]rights.RoleName{n}); err != nil {
		return dst, err
	}
	err = r.users().Discard(r.ctx, core.Role, users.RoleID(n))
	if errors.Is(err, users.ErrGone) {
		err = missingRole(n)
	}
	return dst, err
}

func dropAllRoles(r *request, dst []byte) ([]byte, error) {
	gone, err := r.ownRoles()
	if err != nil {
		return dst, err
	}
	if err := r.revokeEverywhere(gone); err != nil {
		return dst, err
	}
	for _, n := range gone {
		if err := r.users().Discard(r.ctx, core.Role, users.RoleID(n)); err != nil && !errors.Is(err, users.ErrGone) {
			return dst, err
		}
	}
	return bson.AppendInt32(dst, "n", int32(len(gone))), nil
}

// ownRoles returns the roles that were created in the command's database.
func (r *request) ownRoles() (own []rights.RoleName, err error) {
	all, err := r.users().All(core.Role)
	for _, res := range all {
		if d := value.ObjectOf(res.Body); d.Get("db").Str() == r.db {
			own = append(own, rights.RoleName{Role: d.Get("role").Str(), DB: r.db})
		}
	}
	return own, err
}

// wantedRoles returns the roles that rolesInfo asks for.
func (r *request) wantedRoles() (names []rights.RoleName, err error) {
	if r.arg.IsNumber() {
		if names, err = r.ownRoles(); err == nil && args.Flag(r.body, "showBuiltinRoles", false) {
			for _, b := range rights.BuiltInNames(r.db) {
				names = append(names, rights.RoleName{Role: b, DB: r.db})
			}
		}
		return names, err
	}
	list := []value.Value{r.arg}
	if r.arg.Kind() == value.Array {
		list = value.Elements(r.arg)
	}
	for _, v := range list {
		n, err := r.roleName(v)
		if err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	return names, nil
}

func rolesInfo(r *request, dst []byte) ([]byte, error) {
	names, err := r.wantedRoles()
	if err != nil {
		return dst, err
	}
	var list []value.Value
	for _, n := range names {
		d, err := r.shownRole(n)
		if err != nil {
			return dst, err
		}
		if d.IsDefined() {
			list = append(list, d)
		}
	}
	return value.AppendElement(dst, "roles", value.MakeArray(list)), nil
}

// shownRole returns a role as rolesInfo shows it; undefined if it doesn't exist.
func (r *request) shownRole(n rights.RoleName) (value.Value, error) {
	own, builtIn := rights.BuiltIn(n)
	var roles []rights.RoleName
	if !builtIn {
		res, err := r.users().Get(core.Role, users.RoleID(n))
		if res == nil || err != nil {
			return value.Undef(), err
		}
		own, roles = users.PrivilegesOf(value.ObjectOf(res.Body)), users.RolesOf(value.ObjectOf(res.Body))
	}
	w := r.users().Walk()
	if err := w.Add(roles); err != nil {
		return value.Undef(), err
	}
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "_id", users.RoleID(n))
	b = bson.AppendString(b, "role", n.Role)
	b = bson.AppendString(b, "db", n.DB)
	b = users.AppendRoles(b, "roles", roles)
	if v := args.Given(r.body, "showPrivileges"); v.Kind() == value.Bool && v.Bool() {
		b = users.AppendPrivileges(b, "privileges", rights.NewSet(own...).Privileges())
		b = users.AppendPrivileges(b, "inheritedPrivileges",
			rights.NewSet(append(slices.Clone(own), w.Privileges...)...).Privileges())
	}
	b = users.AppendRoles(b, "inheritedRoles", w.Order)
	return value.ObjectOf(bson.End(bson.AppendBool(b, "isBuiltin", builtIn), at)), nil
}
