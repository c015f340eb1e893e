package odd

import "testing"

func TestOdd(t *testing.T) {
	const large int = 1 << 40
	t.Log(large)
}
