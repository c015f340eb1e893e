package sqlapi

import (
	"testing"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// FuzzSessionToken: a token is accepted, refused as a malformed header, or refused as ahead. The token that the server
// writes is accepted at its LSN, and is ahead one LSN before.
func FuzzSessionToken(f *testing.F) {
	for _, s := range []string{"", ",", "0:-1#5", "0:-1#5#2=9", "0:5", "0:", "a:b#c", "0:-1#99999999999999999999",
		"0:-1#1,1:-1#2"} {
		f.Add(s, int64(5))
	}
	f.Fuzz(func(t *testing.T, token string, lsn int64) {
		if err := checkSessionToken(token, lsn); err != nil && !status.Is(err, status.BadRequest) &&
			!status.Is(err, status.NotFound) {
			t.Fatalf("%q: %v", token, err)
		}
		if lsn < 1 {
			return
		}
		own := string(wire.AppendSessionToken(nil, "0", lsn, false))
		if err := checkSessionToken(own, lsn); err != nil {
			t.Fatalf("%q at %d: %v", own, lsn, err)
		}
		if checkSessionToken(own, lsn-1) == nil {
			t.Fatalf("%q at %d is taken", own, lsn-1)
		}
	})
}
