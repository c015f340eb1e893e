package rights

import "testing"

// TestAllows: which grants contain which actions.
func TestAllows(t *testing.T) {
	coll := func(db, name string) Resource { return Resource{DB: db, Collection: name} }
	for _, x := range []struct {
		name    string
		granted Resource
		asked   Resource
		want    bool
	}{
		{"the collection", coll("a", "b"), coll("a", "b"), true},
		{"another collection", coll("a", "b"), coll("a", "c"), false},
		{"another database", coll("a", "b"), coll("c", "b"), false},
		{"the database of a collection", coll("a", "b"), coll("a", ""), false},
		{"a database's collection", coll("a", ""), coll("a", "b"), true},
		{"the database", coll("a", ""), coll("a", ""), true},
		{"a database's system collection", coll("a", ""), coll("a", "system.profile"), false},
		{"a system collection", coll("a", "system.profile"), coll("a", "system.profile"), true},
		{"a collection of all databases", coll("", "b"), coll("a", "b"), true},
		{"a system collection of all databases", coll("", "system.profile"), coll("a", "system.profile"), true},
		{"all databases", coll("", ""), coll("a", "b"), true},
		{"all databases, a database", coll("", ""), coll("a", ""), true},
		{"all databases, one of the server", coll("", ""), coll("local", "oplog.rs"), false},
		{"all databases, a system collection", coll("", ""), coll("a", "system.users"), false},
		{"all databases, the cluster", coll("", ""), Resource{Cluster: true}, false},
		{"the cluster", Resource{Cluster: true}, Resource{Cluster: true}, true},
		{"the cluster, a collection", Resource{Cluster: true}, coll("a", "b"), false},
		{"everything", Resource{Any: true}, coll("a", "system.users"), true},
		{"everything, the cluster", Resource{Any: true}, Resource{Cluster: true}, true},
	} {
		s := NewSet(Privilege{x.granted, []string{"find"}})
		if got := s.Allows(x.asked, "find"); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
		if s.Allows(x.asked, "insert") {
			t.Errorf("%s: another action", x.name)
		}
		if every := NewSet(Privilege{x.granted, []string{anyAction}}); every.Allows(x.asked, "insert") != x.want {
			t.Errorf("%s: anyAction", x.name)
		}
	}
}

// TestBuiltIn: the roles of admin exist only there, and those of a database grant nothing in others.
func TestBuiltIn(t *testing.T) {
	for name, b := range builtIns {
		if _, ok := BuiltIn(RoleName{name, "admin"}); !ok {
			t.Errorf("%s isn't in admin", name)
		}
		ps, ok := BuiltIn(RoleName{name, "db"})
		if ok == b.admin {
			t.Errorf("%s in db: %v", name, ok)
		}
		for _, p := range ps {
			if p.Resource.DB != "db" {
				t.Errorf("%s@db grants on %+v", name, p.Resource)
			}
		}
	}
	for role, want := range map[string][2]bool{"read": {false, false}, "dbAdmin": {false, false},
		"userAdmin": {false, true},
		"readWrite": {true, false}, "dbOwner": {true, true}} {
		ps, _ := BuiltIn(RoleName{role, "db"})
		s := NewSet(ps...)
		got := [2]bool{s.Allows(Resource{DB: "db", Collection: "c"}, "insert"), s.Allows(Resource{DB: "db"},
			"createUser")}
		if got != want {
			t.Errorf("%s: %v, want %v", role, got, want)
		}
	}
}

// TestSees: which names are shown.
func TestSees(t *testing.T) {
	s := NewSet(Privilege{Resource{DB: "a", Collection: "b"}, []string{"find"}},
		Privilege{Resource{Cluster: true}, []string{"inprog"}})
	if !s.Sees("a") || s.Sees("c") || !s.SeesCollection("a", "b") || s.SeesCollection("a", "c") {
		t.Error("one collection")
	}
	if all := NewSet(Privilege{Resource{}, []string{"find"}}); !all.Sees("a") || all.SeesCollection("a",
		"system.users") {
		t.Error("all databases")
	}
}
