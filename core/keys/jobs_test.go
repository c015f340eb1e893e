package keys_test

import (
	"bytes"
	"testing"

	"github.com/orrerydb/orrery/core/keys"
)

// The keys of leases and of processes can be told apart, and each is within its bounds only.
func TestKeysOfJobs(t *testing.T) {
	id := [keys.ProcessLen]byte{1, 2, 255}
	lease, life := keys.AppendLease(nil, 2, 7), keys.AppendProcess(nil, id)
	if kind, gen, ok := keys.ParseLease(lease); kind != 2 || gen != 7 || !ok {
		t.Errorf("%d, %d, %v", kind, gen, ok)
	}
	if got, ok := keys.ParseProcess(life); got != id || !ok {
		t.Errorf("%x, %v", got, ok)
	}
	for _, bad := range [][]byte{nil, lease, life, lease[:6], life[:5], append(bytes.Clone(lease), 0),
		append(bytes.Clone(life), 0), keys.AppendMeta(nil, keys.MetaDropped, 7, "")} {
		if _, _, ok := keys.ParseLease(bad); ok != bytes.Equal(bad, lease) {
			t.Errorf("%x is a lease: %v", bad, ok)
		}
		if _, ok := keys.ParseProcess(bad); ok != bytes.Equal(bad, life) {
			t.Errorf("%x is a process: %v", bad, ok)
		}
	}
	in := func(key []byte, bounds func() (lo, hi []byte)) bool {
		lo, hi := bounds()
		return bytes.Compare(lo, key) <= 0 && bytes.Compare(key, hi) < 0
	}
	last := keys.AppendProcess(nil, [keys.ProcessLen]byte(bytes.Repeat([]byte{255}, keys.ProcessLen)))
	for _, key := range [][]byte{lease, life, last, keys.AppendLease(nil, 255, 1<<32-1)} {
		_, _, isLease := keys.ParseLease(key)
		if in(key, keys.LeaseBounds) != isLease || in(key, keys.ProcessBounds) == isLease {
			t.Errorf("%x is in the wrong bounds", key)
		}
	}
}
