package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/rights"
)

// connectionStatus shows who has logged in, with which roles and privileges. The account has the role root.
func connectionStatus(r *request, dst []byte) ([]byte, error) {
	var users []value.Value
	var roles []rights.RoleName
	var set *rights.Set
	if r.c.user != "" {
		name := userName{r.c.user, usersDB}
		if who := r.c.who; who != nil {
			name, set = who.name, who.set
			if len(who.of) > 0 && who.of[0].res != nil {
				w := r.s.newWalk()
				if err := w.roles(rolesOf(value.ObjectOf(who.of[0].res.Body))); err != nil {
					return dst, err
				}
				roles = w.order
			}
		} else {
			root := rights.RoleName{Role: "root", DB: usersDB}
			roles = append(roles, root)
			ps, _ := rights.BuiltIn(root)
			set = rights.NewSet(ps...)
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "user", name.user)
		users = append(users, value.ObjectOf(bson.End(bson.AppendString(b, "db", name.db), at)))
	}
	at, dst := bson.BeginObject(dst, "authInfo")
	dst = value.AppendElement(dst, "authenticatedUsers", value.MakeArray(users))
	dst = appendRoles(dst, "authenticatedUserRoles", roles)
	if args.Flag(r.body, "showPrivileges", false) {
		var ps []rights.Privilege
		if set != nil {
			ps = set.Privileges()
		}
		dst = appendPrivileges(dst, "authenticatedUserPrivileges", ps)
	}
	return bson.End(dst, at), nil
}
