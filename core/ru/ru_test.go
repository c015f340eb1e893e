package ru

import "testing"

// A sum of charges has the digits of its parts, not those of binary fractions.
func TestSum(t *testing.T) {
	for _, c := range []struct{ sum, want float64 }{
		{2.3 + 24.5657, 26.8657}, {0.1 + 0.2, 0.3}, {373.5000000000002, 373.5}, {0, 0}, {2.39705, 2.3971},
	} {
		if got := Sum(c.sum); got != c.want {
			t.Errorf("Sum(%v) = %v, want %v", c.sum, got, c.want)
		}
	}
}
