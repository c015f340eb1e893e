package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/rights"
	"github.com/orrerydb/orrery/mongoapi/users"
)

// rolesOf returns the value of $$USER_ROLES: the roles of a user, or root for the account.
func rolesOf(s users.Store, who *users.Principal) (value.Value, error) {
	roles := []rights.RoleName{{Role: "root", DB: users.DB}}
	if who != nil {
		var err error
		if roles, err = s.RolesOf(who); err != nil {
			return value.Undef(), err
		}
	}
	var out []value.Value
	for _, n := range roles {
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "_id", n.DB+"."+n.Role)
		b = bson.AppendString(b, "role", n.Role)
		out = append(out, value.ObjectOf(bson.End(bson.AppendString(b, "db", n.DB), at)))
	}
	return value.MakeArray(out), nil
}

// connectionStatus shows who has logged in, with which roles and privileges. The account has the role root.
func connectionStatus(r *request, dst []byte) ([]byte, error) {
	var names []value.Value
	var roles []rights.RoleName
	var set *rights.Set
	if r.c.user != "" {
		name := users.Name{User: r.c.user, DB: users.DB}
		if who := r.c.who; who != nil {
			name, set = who.Name, who.Set
			var err error
			if roles, err = r.users().RolesOf(who); err != nil {
				return dst, err
			}
		} else {
			root := rights.RoleName{Role: "root", DB: users.DB}
			roles = append(roles, root)
			ps, _ := rights.BuiltIn(root)
			set = rights.NewSet(ps...)
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "user", name.User)
		names = append(names, value.ObjectOf(bson.End(bson.AppendString(b, "db", name.DB), at)))
	}
	at, dst := bson.BeginObject(dst, "authInfo")
	dst = value.AppendElement(dst, "authenticatedUsers", value.MakeArray(names))
	dst = users.AppendRoles(dst, "authenticatedUserRoles", roles)
	if args.Flag(r.body, "showPrivileges", false) {
		var ps []rights.Privilege
		if set != nil {
			ps = set.Privileges()
		}
		dst = users.AppendPrivileges(dst, "authenticatedUserPrivileges", ps)
	}
	return bson.End(dst, at), nil
}
