package mongoapi

import (
	"errors"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/rights"
	"github.com/orrerydb/orrery/mongoapi/users"
)

var (
	createUserArguments = args.Set{"pwd": args.String, "customData": args.Object, "roles": args.Array,
		"digestPassword":             args.StrictBool,
		"authenticationRestrictions": args.Array, "mechanisms": args.Array}
	usersInfoArguments = args.Set{"showCredentials": args.StrictBool, "showPrivileges": args.StrictBool,
		"showCustomData": args.StrictBool, "showAuthenticationRestrictions": args.StrictBool, "filter": args.Object}
	rolesArguments = args.Set{"roles": args.Array}
)

// nameArg reads the name of the user or role that a command is about.
func (r *request) nameArg() (string, error) {
	if r.arg.Kind() != value.String {
		return "", args.Want(false, r.name, []byte(r.name), r.arg, "type 'string'")
	}
	if r.arg.Str() == "" {
		return "", merr.New(merr.BadValue, "Username for %s must not be empty", r.name)
	}
	return r.arg.Str(), nil
}

// roleName reads the name of a role: a string stands for a role of the command's database.
func (r *request) roleName(v value.Value) (rights.RoleName, error) {
	switch {
	case v.Kind() == value.String:
		return rights.RoleName{Role: v.Str(), DB: r.db}, nil
	case v.Kind() == value.Object && v.Get("role").Kind() == value.String && v.Get("db").Kind() == value.String:
		return rights.RoleName{Role: v.Get("role").Str(), DB: v.Get("db").Str()}, nil
	}
	return rights.RoleName{}, merr.New(merr.BadValue, "Role names must be either strings or objects with the fields "+
		"role and db")
}

// readRoles reads a list of roles, which must exist.
func (r *request) readRoles(list value.Value) ([]rights.RoleName, error) {
	out := []rights.RoleName{}
	for _, v := range value.Elements(list) {
		n, err := r.roleName(v)
		if err != nil {
			return nil, err
		}
		ok, err := r.roleExists(n)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, merr.New(merr.RoleNotFound, "Could not find role: %s", n)
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

func (r *request) roleExists(n rights.RoleName) (bool, error) {
	if _, ok := rights.BuiltIn(n); ok {
		return true, nil
	}
	res, err := r.users().Get(core.Role, users.RoleID(n))
	return res != nil, err
}

// readMechanisms reads for which mechanisms a password has credentials.
func (r *request) readMechanisms(digested bool) ([]string, error) {
	list := args.Given(r.body, "mechanisms")
	if !list.IsDefined() {
		if digested {
			return []string{users.MechSHA1}, nil
		}
		return []string{users.MechSHA1, users.MechSHA256}, nil
	}
	var out []string
	for _, v := range value.Elements(list) {
		switch m := v.Str(); {
		case m != users.MechSHA1 && m != users.MechSHA256:
			return nil, merr.New(merr.BadValue, "Unknown auth mechanism '%s'", m)
		case m == users.MechSHA256 && digested:
			return nil, merr.New(merr.BadValue, "Use of SCRAM-SHA-256 requires undigested passwords")
		case !slices.Contains(out, m):
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil, merr.New(merr.BadValue, "mechanisms field must not be empty")
	}
	return out, nil
}

// readCredentials returns the credentials of the command's password; undefined if it has none.
func (r *request) readCredentials(n users.Name) (value.Value, error) {
	pwd, digested := args.Given(r.body, "pwd"), !args.Flag(r.body, "digestPassword", true)
	mechanisms, err := r.readMechanisms(digested)
	if err != nil || !pwd.IsDefined() {
		return value.Undef(), err
	}
	if pwd.Str() == "" {
		return value.Undef(), merr.New(merr.BadValue, "Password cannot be empty")
	}
	at, b := bson.Begin(nil)
	for _, m := range mechanisms {
		if b, err = users.AppendCredentials(b, m, n.User, pwd.Str(), digested, r.s.clk.Random); err != nil {
			return value.Undef(), merr.New(merr.BadValue, "The password can't be used with %s: %s", m, err)
		}
	}
	return value.ObjectOf(bson.End(b, at)), nil
}

// checkRestrictions refuses what isn't enforced.
func (r *request) checkRestrictions() error {
	if v := args.Given(r.body, "authenticationRestrictions"); v.IsDefined() && v.Len() > 0 {
		return merr.NotSupported("authenticationRestrictions")
	}
	return nil
}

func createUser(r *request, dst []byte) ([]byte, error) {
	name, err := r.nameArg()
	if err != nil {
		return dst, err
	}
	if strings.IndexByte(name, 0) >= 0 {
		return dst, merr.New(merr.BadValue, "Username cannot contain NULL characters")
	}
	n := users.Name{User: name, DB: r.db}
	if !args.Given(r.body, "roles").IsDefined() {
		return dst, merr.New(merr.MissingField, "BSON field 'createUser.roles' is missing but a required field")
	}
	if err := r.checkRestrictions(); err != nil {
		return dst, err
	}
	roles, err := r.readRoles(r.body.Get("roles"))
	if err != nil {
		return dst, err
	}
	creds, err := r.readCredentials(n)
	if err != nil {
		return dst, err
	}
	if !creds.IsDefined() {
		return dst, merr.New(merr.BadValue, "Must provide a 'pwd' field for all user documents, except those with "+
			"'$external' as the user's source db")
	}
	if name == r.s.o.Account {
		return dst, merr.New(merr.UserExists, "User \"%s\" already exists", n)
	}
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "_id", n.ID())
	id := r.s.clk.UUID()
	b = value.AppendElement(b, "userId", value.UUIDOf(id[:]))
	b = bson.AppendString(b, "user", n.User)
	b = bson.AppendString(b, "db", n.DB)
	b = value.AppendElement(b, "credentials", creds)
	b = users.AppendRoles(b, "roles", roles)
	if c := args.Given(r.body, "customData"); c.IsDefined() {
		b = value.AppendElement(b, "customData", c)
	}
	err = r.users().Add(r.ctx, core.Login, n.ID(), bson.End(b, at))
	if status.Is(err, status.Conflict) {
		err = merr.New(merr.UserExists, "User \"%s\" already exists", n)
	}
	return dst, err
}

// alterUser changes the document of a user.
func (r *request) alterUser(n users.Name, change func(old value.Value) (value.Value, error)) error {
	err := r.users().Alter(r.ctx, core.Login, n.ID(), change)
	if errors.Is(err, users.ErrGone) {
		return users.Missing(n)
	}
	return err
}

// replaced returns a document with other values of some fields. An undefined one leaves the field as it is.
func replaced(d value.Value, fields map[string]value.Value) value.Value {
	at, b := bson.Begin(nil)
	done := map[string]bool{}
	for it := d.Iter(); it.Next(); {
		key := string(it.Key())
		if v, ok := fields[key]; ok && v.IsDefined() {
			b, done[key] = value.AppendElement(b, key, v), true
			continue
		}
		b = append(b, it.Element()...)
	}
	for _, key := range []string{"credentials", "roles", "privileges", "customData"} {
		if v, ok := fields[key]; ok && v.IsDefined() && !done[key] {
			b = value.AppendElement(b, key, v)
		}
	}
	return value.ObjectOf(bson.End(b, at))
}

// roleList returns roles as the value of a document's field.
func roleList(roles []rights.RoleName) value.Value {
	at, b := bson.Begin(nil)
	return value.ObjectOf(bson.End(users.AppendRoles(b, "roles", roles), at)).Get("roles")
}

func updateUser(r *request, dst []byte) ([]byte, error) {
	name, err := r.nameArg()
	if err != nil {
		return dst, err
	}
	n := users.Name{User: name, DB: r.db}
	if err := r.checkRestrictions(); err != nil {
		return dst, err
	}
	fields := map[string]value.Value{"customData": args.Given(r.body, "customData")}
	if v := args.Given(r.body, "roles"); v.IsDefined() {
		roles, err := r.readRoles(v)
		if err != nil {
			return dst, err
		}
		fields["roles"] = roleList(roles)
	}
	creds, err := r.readCredentials(n)
	if err != nil {
		return dst, err
	}
	only := args.Given(r.body, "mechanisms")
	if !args.Given(r.body, "pwd").IsDefined() && !fields["roles"].IsDefined() && !fields["customData"].IsDefined() &&
		!only.IsDefined() && !args.Given(r.body, "authenticationRestrictions").IsDefined() {
		return dst, merr.New(merr.BadValue, "Must specify at least one field to update in updateUser")
	}
	return dst, r.alterUser(n, func(old value.Value) (value.Value, error) {
		set := map[string]value.Value{"roles": fields["roles"], "customData": fields["customData"],
			"credentials": creds}
		if only.IsDefined() && !creds.IsDefined() { // without a password: fewer mechanisms
			at, b := bson.Begin(nil)
			for _, m := range value.Elements(only) {
				c := old.Get("credentials").Get(m.Str())
				if !c.IsDefined() {
					return old, merr.New(merr.BadValue,
						"mechanisms field must be a subset of previously set mechanisms")
				}
				b = value.AppendElement(b, m.Str(), c)
			}
			set["credentials"] = value.ObjectOf(bson.End(b, at))
		}
		return replaced(old, set), nil
	})
}

func dropUser(r *request, dst []byte) ([]byte, error) {
	name, err := r.nameArg()
	if err != nil {
		return dst, err
	}
	n := users.Name{User: name, DB: r.db}
	err = r.users().Discard(r.ctx, core.Login, n.ID())
	if errors.Is(err, users.ErrGone) {
		err = users.Missing(n)
	}
	return dst, err
}

func dropAllUsers(r *request, dst []byte) ([]byte, error) {
	all, err := r.users().All(core.Login)
	if err != nil {
		return dst, err
	}
	n := int32(0)
	for _, res := range all {
		if value.ObjectOf(res.Body).Get("db").Str() != r.db {
			continue
		}
		switch err := r.users().Discard(r.ctx, core.Login, res.ID); {
		case err == nil:
			n++
		case !errors.Is(err, users.ErrGone):
			return dst, err
		}
	}
	return bson.AppendInt32(dst, "n", n), nil
}

// changeRoles is grantRolesToUser and revokeRolesFromUser.
func changeRoles(r *request, dst []byte) ([]byte, error) {
	name, err := r.nameArg()
	if err != nil {
		return dst, err
	}
	roles, err := r.requiredRoles()
	if err != nil {
		return dst, err
	}
	grant := r.name == "grantRolesToUser"
	return dst, r.alterUser(users.Name{User: name, DB: r.db}, func(old value.Value) (value.Value, error) {
		return replaced(old, map[string]value.Value{"roles": roleList(merged(users.RolesOf(old), roles, grant))}), nil
	})
}

// requiredRoles reads the argument roles.
func (r *request) requiredRoles() ([]rights.RoleName, error) {
	list := args.Given(r.body, "roles")
	if !list.IsDefined() {
		return nil, merr.New(merr.MissingField, "BSON field '%s.roles' is missing but a required field", r.name)
	}
	if list.Len() == 0 {
		return nil, merr.New(merr.BadValue, "%s command requires a non-empty \"roles\" array", r.name)
	}
	return r.readRoles(list)
}

// merged returns roles with others, or without them.
func merged(have, others []rights.RoleName, grant bool) []rights.RoleName {
	out := slices.DeleteFunc(slices.Clone(have), func(n rights.RoleName) bool { return slices.Contains(others, n) })
	if grant {
		out = append(out, others...)
	}
	return out
}

// wantedUsers returns the users that usersInfo asks for; all = those of a database, or of all with "".
func (r *request) wantedUsers() (names []users.Name, all bool, db string, err error) {
	one := func(v value.Value) error {
		switch {
		case v.Kind() == value.String:
			names = append(names, users.Name{User: v.Str(), DB: r.db})
		case v.Kind() == value.Object && v.Get("user").Kind() == value.String && v.Get("db").Kind() == value.String:
			names = append(names, users.Name{User: v.Get("user").Str(), DB: v.Get("db").Str()})
		default:
			return merr.New(merr.BadValue, "User names must be either strings or objects with the fields user and db")
		}
		return nil
	}
	switch v := r.arg; {
	case v.IsNumber():
		return nil, true, r.db, nil
	case v.Kind() == value.Object && v.Get("forAllDBs").IsDefined():
		return nil, true, "", nil
	case v.Kind() == value.Array:
		for _, x := range value.Elements(v) {
			if err := one(x); err != nil {
				return nil, false, "", err
			}
		}
		return names, false, "", nil
	default:
		return names, false, "", one(v)
	}
}

func usersInfo(r *request, dst []byte) ([]byte, error) {
	names, all, db, err := r.wantedUsers()
	if err != nil {
		return dst, err
	}
	privileges := args.Flag(r.body, "showPrivileges", false)
	if all && privileges {
		return dst, merr.New(merr.IllegalOperation,
			"Privilege or restriction details require exact-match usersInfo queries")
	}
	var found []*core.Resource
	if all {
		list, err := r.users().All(core.Login)
		if err != nil {
			return dst, err
		}
		for _, res := range list {
			if db == "" || value.ObjectOf(res.Body).Get("db").Str() == db {
				found = append(found, res)
			}
		}
	}
	for _, n := range names {
		res, err := r.users().Get(core.Login, n.ID())
		if err != nil {
			return dst, err
		}
		if res != nil {
			found = append(found, res)
		}
	}
	f, err := filter.Compile(args.Given(r.body, "filter"), r.filterOptions(nil))
	if err != nil {
		return dst, err
	}
	var users []value.Value
	for _, res := range found {
		d, err := r.shownUser(value.ObjectOf(res.Body), privileges)
		if err != nil {
			return dst, err
		}
		ok, err := f.Match(r.exprEnv(), d)
		if err != nil {
			return dst, err
		}
		if ok {
			users = append(users, d)
		}
	}
	return value.AppendElement(dst, "users", value.MakeArray(users)), nil
}

// shownUser returns a user as usersInfo shows it.
func (r *request) shownUser(d value.Value, privileges bool) (value.Value, error) {
	at, b := bson.Begin(nil)
	for it := d.Iter(); it.Next(); {
		switch string(it.Key()) {
		case "credentials":
			if args.Flag(r.body, "showCredentials", false) {
				b = append(b, it.Element()...)
			}
		case "customData":
			if args.Flag(r.body, "showCustomData", true) {
				b = append(b, it.Element()...)
			}
		default:
			b = append(b, it.Element()...)
		}
	}
	var mechanisms []string
	for it := d.Get("credentials").Iter(); it.Next(); {
		mechanisms = append(mechanisms, string(it.Key()))
	}
	b = bson.AppendStrings(b, "mechanisms", mechanisms...)
	if privileges {
		w := r.users().Walk()
		if err := w.Add(users.RolesOf(d)); err != nil {
			return d, err
		}
		b = users.AppendRoles(b, "inheritedRoles", w.Order)
		b = users.AppendPrivileges(b, "inheritedPrivileges", rights.NewSet(w.Privileges...).Privileges())
		b = value.AppendElement(b, "inheritedAuthenticationRestrictions", value.MakeArray(nil))
	}
	return value.ObjectOf(bson.End(b, at)), nil
}
