package users

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/rights"
)

// RoleID returns the id of a role's resource.
func RoleID(n rights.RoleName) string { return n.DB + "." + n.Role }

// RolesOf returns the roles in a stored document.
func RolesOf(d value.Value) []rights.RoleName {
	var out []rights.RoleName
	for it := d.Get("roles").Iter(); d.Get("roles").Kind() == value.Array && it.Next(); {
		out = append(out, rights.RoleName{Role: it.Value().Get("role").Str(), DB: it.Value().Get("db").Str()})
	}
	return out
}

// AppendRoles appends roles as documents show them.
func AppendRoles(dst []byte, name string, roles []rights.RoleName) []byte {
	list := make([]value.Value, len(roles))
	for i, n := range roles {
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "role", n.Role)
		list[i] = value.ObjectOf(bson.End(bson.AppendString(b, "db", n.DB), at))
	}
	return value.AppendElement(dst, name, value.MakeArray(list))
}

// PrivilegesOf returns the privileges in a stored document.
func PrivilegesOf(d value.Value) []rights.Privilege {
	var out []rights.Privilege
	for _, v := range value.Elements(d.Get("privileges")) {
		p, err := ReadPrivilege(v)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// ReadPrivilege reads a privilege, as commands and documents have it.
func ReadPrivilege(v value.Value) (p rights.Privilege, err error) {
	res := v.Get("resource")
	if v.Kind() != value.Object || res.Kind() != value.Object || v.Get("actions").Kind() != value.Array {
		return p, merr.New(merr.FailedToParse, "A privilege needs a resource, which is a document, and actions, "+
			"which are an array")
	}
	for it := res.Iter(); it.Next(); {
		x := it.Value()
		switch key := string(it.Key()); {
		case (key == "cluster" || key == "anyResource") && x.Kind() == value.Bool:
			if key == "cluster" {
				p.Resource.Cluster = x.Bool()
			} else {
				p.Resource.Any = x.Bool()
			}
		case (key == "db" || key == "collection") && x.Kind() == value.String:
			if key == "db" {
				p.Resource.DB = x.Str()
			} else {
				p.Resource.Collection = x.Str()
			}
		default:
			return p, merr.New(merr.FailedToParse, "A resource can't have the field %s of type %s", key,
				expr.TypeName(x))
		}
	}
	named := res.Get("db").IsDefined() || res.Get("collection").IsDefined()
	switch {
	case named && (p.Resource.Cluster || p.Resource.Any), p.Resource.Cluster && p.Resource.Any,
		named && !(res.Get("db").IsDefined() && res.Get("collection").IsDefined()),
		!named && !p.Resource.Cluster && !p.Resource.Any:
		return p, merr.New(merr.FailedToParse, "A resource is {db, collection}, {cluster: true} or {anyResource: true}")
	}
	for _, a := range value.Elements(v.Get("actions")) {
		if a.Kind() != value.String || !rights.Known(a.Str()) {
			return p, merr.New(merr.BadValue, "Unrecognized action privilege string: %s", a.Str())
		}
		p.Actions = append(p.Actions, a.Str())
	}
	if len(p.Actions) == 0 {
		return p, merr.New(merr.FailedToParse, "A privilege needs at least one action")
	}
	return p, nil
}

// AppendPrivileges appends privileges as documents show them.
func AppendPrivileges(dst []byte, name string, ps []rights.Privilege) []byte {
	list := make([]value.Value, len(ps))
	for i, p := range ps {
		at, b := bson.Begin(nil)
		ra, b := bson.BeginObject(b, "resource")
		switch r := p.Resource; {
		case r.Any:
			b = bson.AppendBool(b, "anyResource", true)
		case r.Cluster:
			b = bson.AppendBool(b, "cluster", true)
		default:
			b = bson.AppendString(b, "db", r.DB)
			b = bson.AppendString(b, "collection", r.Collection)
		}
		b = bson.AppendStrings(bson.End(b, ra), "actions", p.Actions...)
		list[i] = value.ObjectOf(bson.End(b, at))
	}
	return value.AppendElement(dst, name, value.MakeArray(list))
}
