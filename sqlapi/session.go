package sqlapi

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// defaultConsistency is the account's level when the options name none. Reads of this server satisfy each level. The
// level only decides which requests are refused and what the account document shows.
const defaultConsistency = "Session"

// consistency levels from strong to weak, as the header spells them.
var consistencyRank = map[string]int{"Strong": 0, "BoundedStaleness": 1, "Session": 2, "ConsistentPrefix": 3,
	"Eventual": 4}

// vectorTokens is the version of the protocol from which on session tokens have a version before their LSN.
const vectorTokens = "2018-06-18"

// simpleTokens reports whether the client only reads session tokens without a version.
func (c *call) simpleTokens() bool {
	v := header(c.In, hVersion)
	return v != "" && v < vectorTokens
}

// checkConsistency refuses a level stronger than the account's.
func (c *call) checkConsistency() error {
	v := header(c.In, hConsistency)
	account := c.s.opt.Consistency
	if v == "" || v == account {
		return nil
	}
	rank, ok := consistencyRank[v]
	if !ok {
		return badHeader("x-ms-consistency-level", v)
	}
	if rank < consistencyRank[account] {
		return status.New(status.BadRequest, "ConsistencyLevel %s specified in the request is invalid when service "+
			"is configured with consistency level %s. Ensure the request consistency level is not stronger than the "+
			"service consistency level.", v, account)
	}
	return nil
}

// checkSession refuses a read whose session token names a commit that the container doesn't have.
func (c *call) checkSession(ct *core.Container, token string) error {
	err := checkSessionToken(token, ct.KnownLSN())
	if !status.Is(err, status.NotFound) {
		return err
	}
	lsn, err := ct.GivenLSN(c.Ctx())
	if err != nil {
		return err
	}
	return checkSessionToken(token, lsn)
}

// checkSessionToken refuses a read whose token has an LSN greater than lsn, the container's last committed one. The
// token of a whole container is a list with commas, and it may name partitions that no longer exist. All partitions of
// a container share one sequence of LSNs, so the partition ids needn't be checked.
func checkSessionToken(token string, lsn int64) error {
	for token != "" {
		part := token
		if i := strings.IndexByte(token, ','); i >= 0 {
			part, token = token[:i], token[i+1:]
		} else {
			token = ""
		}
		n, ok := wire.SessionLSN(part)
		if !ok {
			return badHeader("x-ms-session-token", part)
		}
		if n > lsn {
			return status.WithSub(status.NotFound, status.SubReadSessionUnavailable, "read session not available")
		}
	}
	return nil
}
