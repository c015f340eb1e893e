package sqlapi

import "testing"

func TestRIDs(t *testing.T) {
	coll := [8]byte{1, 2, 3, 4, 0x80, 0xFF, 0xFF, 0xFF}
	text := string(appendChildRID(nil, coll, 0x0ABCDEF012345678, ridItem))
	if len(text) != itemRIDLen {
		t.Fatalf("item rid %q", text)
	}
	got, n, ok := parseItemRID(text)
	if !ok || got != coll || n != 0x0ABCDEF012345678 {
		t.Fatalf("%q read back as %v %x %v", text, got, n, ok)
	}
	if _, _, ok := parseItemRID(string(appendChildRID(nil, coll, 1, ridRange))); ok {
		t.Error("the rid of a range was taken for an item's")
	}
	for _, bad := range []string{"", "AQID", text[:23], text[:23] + "/", text + "AAAA", "AQIDBIB/////AAAAAAAAAA=="} {
		if _, _, ok := parseItemRID(bad); ok {
			t.Errorf("%q accepted", bad)
		}
	}
	if db := string(appendRID(nil, coll[:4])); len(db) != databaseRIDLen {
		t.Errorf("database rid %q", db)
	}
	if c := string(appendRID(nil, coll[:])); len(c) != containerRIDLen || c != "AQIDBID---8=" {
		t.Errorf("container rid %q", c)
	}
}

func FuzzItemRID(f *testing.F) {
	f.Add("AQIDBID---8AAAAAAAAAAA==")
	f.Fuzz(func(t *testing.T, s string) {
		if coll, n, ok := parseItemRID(s); ok {
			if back := string(appendChildRID(nil, coll, n, ridItem)); back != s {
				t.Fatalf("%q comes back as %q", s, back)
			}
		}
	})
}
