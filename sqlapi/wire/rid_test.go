package wire

import "testing"

func TestRIDs(t *testing.T) {
	coll := [8]byte{1, 2, 3, 4, 0x80, 0xFF, 0xFF, 0xFF}
	text := string(AppendChildRID(nil, coll, 0x0ABCDEF012345678, RIDItem))
	if len(text) != ItemRIDLen {
		t.Fatalf("item rid %q", text)
	}
	got, n, ok := ParseItemRID(text)
	if !ok || got != coll || n != 0x0ABCDEF012345678 {
		t.Fatalf("%q read back as %v %x %v", text, got, n, ok)
	}
	if _, _, ok := ParseItemRID(string(AppendChildRID(nil, coll, 1, RIDRange))); ok {
		t.Error("the rid of a range was taken for an item's")
	}
	for _, bad := range []string{"", "AQID", text[:23], text[:23] + "/", text + "AAAA", "AQIDBIB/////AAAAAAAAAA=="} {
		if _, _, ok := ParseItemRID(bad); ok {
			t.Errorf("%q accepted", bad)
		}
	}
	if db := string(AppendRID(nil, coll[:4])); len(db) != DatabaseRIDLen {
		t.Errorf("database rid %q", db)
	}
	if c := string(AppendRID(nil, coll[:])); len(c) != containerRIDLen || c != "AQIDBID---8=" {
		t.Errorf("container rid %q", c)
	}
}

func FuzzItemRID(f *testing.F) {
	f.Add("AQIDBID---8AAAAAAAAAAA==")
	f.Fuzz(func(t *testing.T, s string) {
		if coll, n, ok := ParseItemRID(s); ok {
			if back := string(AppendChildRID(nil, coll, n, RIDItem)); back != s {
				t.Fatalf("%q comes back as %q", s, back)
			}
		}
	})
}
