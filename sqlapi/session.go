package sqlapi

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/status"
)

// defaultConsistency is the account's level when the options name none. Every read here is at least as strong as any
// level: the level only decides which requests are refused, and what clients read in the account document.
const defaultConsistency = "Session"

// consistency levels from strong to weak, as the header spells them.
var consistencyRank = map[string]int{"Strong": 0, "BoundedStaleness": 1, "Session": 2, "ConsistentPrefix": 3,
	"Eventual": 4}

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

// appendSessionToken appends the token of one partition: id, version -1 and one LSN. SDKs parse it: both numbers must
// be integers and there is never a region part.
func appendSessionToken(dst []byte, rangeID string, lsn int64) []byte {
	dst = append(dst, rangeID...)
	dst = append(dst, ":-1#"...)
	return strconv.AppendInt(dst, lsn, 10)
}

// checkSessionToken refuses a read whose token is ahead of everything that the container has committed. Tokens of a
// whole container are a comma list and may name partitions that were split long ago: all LSNs of a container are on one
// scale, so only the greatest one matters.
func checkSessionToken(token string, lsn int64) error {
	for token != "" {
		part := token
		if i := strings.IndexByte(token, ','); i >= 0 {
			part, token = token[:i], token[i+1:]
		} else {
			token = ""
		}
		n, ok := sessionLSN(part)
		if !ok {
			return badHeader("x-ms-session-token", part)
		}
		if n > lsn {
			return status.WithSub(status.NotFound, status.SubReadSessionUnavailable, "read session not available")
		}
	}
	return nil
}

// sessionLSN reads the LSN of one token: "id:version#lsn" with any number of "#region=lsn" parts, or the old "id:lsn".
func sessionLSN(part string) (int64, bool) {
	i := strings.IndexByte(part, ':')
	if i < 0 {
		return 0, false
	}
	v := part[i+1:]
	if j := strings.IndexByte(v, '#'); j >= 0 {
		v = v[j+1:]
		if k := strings.IndexByte(v, '#'); k >= 0 {
			v = v[:k]
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	return n, err == nil
}
