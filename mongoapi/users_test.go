package mongoapi

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/rights"
	"github.com/orrerydb/orrery/mongoapi/users"
)

func userCommand(name, user, role string) bson.D {
	d := bson.D{{Key: name, Value: user}}
	if name == "createUser" {
		d = append(d, bson.E{Key: "pwd", Value: "secret"})
	}
	return append(d, bson.E{Key: "roles", Value: bson.A{role}})
}

// TestRightsFollowTheUser: a change of a user, or of its roles, holds for the next command of its connections. A user
// that is removed has no rights, also if another one gets its name.
func TestRightsFollowTheUser(t *testing.T) {
	_, addr := serve(t, Options{Auth: true}, nil)
	root, ann := connect(t, addr), connect(t, addr)
	root.login()
	ok := func(d bson.D) {
		t.Helper()
		if raw, e := root.ask(d); e.OK != 1 {
			t.Fatal(raw)
		}
	}
	find := func(code int32) {
		t.Helper()
		if _, e := ann.ask(bson.D{{Key: "find", Value: "c"}}); e.Code != code {
			t.Errorf("%+v, want %d", e, code)
		}
	}
	ok(bson.D{{Key: "createRole", Value: "clerk"}, {Key: "privileges", Value: bson.A{}}, {Key: "roles",
		Value: bson.A{}}})
	ok(userCommand("createUser", "ann", "clerk"))
	if e := ann.loginAs("db", "ann", "secret", ""); e.OK != 1 {
		t.Fatal(e)
	}
	find(13)
	ok(bson.D{{Key: "grantRolesToRole", Value: "clerk"}, {Key: "roles", Value: bson.A{"read"}}})
	find(0)
	ok(bson.D{{Key: "dropRole", Value: "clerk"}})
	find(13)
	ok(userCommand("grantRolesToUser", "ann", "read"))
	find(0)
	ok(bson.D{{Key: "updateUser", Value: "ann"}, {Key: "pwd", Value: "other"}})
	find(0) // a connection stays logged in
	if e := connect(t, addr).loginAs("db", "ann", "secret", ""); e.Code != 18 {
		t.Errorf("the old password: %+v", e)
	}
	ok(bson.D{{Key: "dropUser", Value: "ann"}})
	find(13)
	ok(userCommand("createUser", "ann", "read"))
	find(13)
	if e := ann.loginAs("db", "ann", "secret", ""); e.OK != 1 {
		t.Fatal(e)
	}
	find(0)
	ok(bson.D{{Key: "dropAllUsersFromDatabase", Value: 1}})
	find(13)
}

// TestUsersWithoutAuth: a server that asks for no login enforces no rights, but knows who has logged in.
func TestUsersWithoutAuth(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	if raw, e := c.ask(userCommand("createUser", "ann", "read")); e.OK != 1 {
		t.Fatal(raw)
	}
	if e := c.loginAs("db", "ann", "secret", ""); e.OK != 1 {
		t.Fatal(e)
	}
	if raw, e := c.ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}}); e.OK != 1 {
		t.Error(raw)
	}
}

// TestPlain: the mechanism PLAIN takes users and the account, where it is allowed.
func TestPlain(t *testing.T) {
	_, addr := serve(t, Options{Auth: true, PlainText: true}, nil)
	root := connect(t, addr)
	root.login()
	for _, m := range []string{users.MechSHA1, users.MechSHA256} {
		if raw, e := root.ask(append(userCommand("createUser", m, "read"), bson.E{Key: "mechanisms", Value: bson.A{m}},
			bson.E{Key: "$db", Value: "admin"})); e.OK != 1 {
			t.Fatal(raw)
		}
	}
	for _, x := range []struct {
		db, user, password string
		code               int32
	}{
		{"admin", "localhost", "a2V5", 0},
		{"$external", "localhost", "a2V5", 0},
		{"$external", "localhost", "a2V6", 18},
		{"$external", users.MechSHA1, "secret", 0},
		{"admin", users.MechSHA256, "secret", 0},
		{"admin", users.MechSHA256, "Secret", 18},
		{"db", users.MechSHA256, "secret", 18},
		{"admin", "nobody", "secret", 18},
		{"admin", "localhost", "", 18},
		{"admin", "localhost", "a2V5\x00x", 18},
	} {
		c := connect(t, addr)
		if e := c.loginAs(x.db, x.user, x.password, users.MechPlain); e.Code != x.code {
			t.Errorf("%+v: %+v", x, e)
		}
		_, e := c.ask(bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "admin"}})
		if (e.Code == 0) != (x.code == 0) {
			t.Errorf("%+v: a find: %+v", x, e)
		}
	}
}

// TestMechanismsOfUsers: hello names the mechanisms of a user, and all of them for one that doesn't exist.
func TestMechanismsOfUsers(t *testing.T) {
	_, addr := serve(t, Options{Auth: true}, nil)
	c := connect(t, addr)
	c.login()
	c.ask(append(userCommand("createUser", "old", "read"), bson.E{Key: "mechanisms", Value: bson.A{users.MechSHA1}}))
	for user, want := range map[string]string{"db.old": `["SCRAM-SHA-1"]`,
		"db.nobody":       `["SCRAM-SHA-256","SCRAM-SHA-1"]`,
		"admin.localhost": `["SCRAM-SHA-256","SCRAM-SHA-1"]`} {
		raw, _ := c.ask(append(greeting(), bson.E{Key: "saslSupportedMechs", Value: user}))
		if got := raw.Lookup("saslSupportedMechs").String(); got != want {
			t.Errorf("%s: %s", user, got)
		}
	}
}

// TestDemands: each command asks for something, unless everybody may run it before a login, or only root may run it.
func TestDemands(t *testing.T) {
	for name := range demands {
		if _, ok := commands[name]; !ok && !unsupported[name] {
			t.Errorf("%s isn't a command", name)
		}
	}
	for name := range demands { // no argument makes one panic
		for _, arg := range []value.Value{value.Int32Of(1), value.StringOf("x"), valueOf(t, bson.D{{Key: "x",
			Value: 1}}),
			value.MakeArray(nil)} {
			r := &request{name: name, arg: arg, db: "db", body: valueOf(t, bson.D{{Key: "pipeline", Value: bson.A{1}}}),
				s: newTestServer(t, Options{})}
			nobody := may{r, &users.Principal{Set: rights.NewSet()}}
			if demands[name](nobody) && arg.Kind() == value.String && name == "insert" {
				t.Errorf("%s is allowed without rights", name)
			}
		}
	}
}
