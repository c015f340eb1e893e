package transfer

import "testing"

// Texts of --map with slashes name places, others name fields. What isn't named keeps its name.
func TestNames(t *testing.T) {
	n, err := ParseNames([]string{"town=city", "shop/orders=test/orders"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"town": "city", "id": "id", "shop/orders": "shop/orders"} {
		if got := n.Field(name); got != want {
			t.Errorf("field %s: %s, want %s", name, got, want)
		}
	}
	for place, want := range map[string]string{"shop/orders": "test/orders", "shop/items": "shop/items", "town": "town"} {
		if got := n.Place(place); got != want {
			t.Errorf("place %s: %s, want %s", place, got, want)
		}
	}
	for _, bad := range []string{"town", "=city", "town=", "a\x00=b"} {
		if _, err := ParseNames([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
