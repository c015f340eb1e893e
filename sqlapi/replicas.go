package sqlapi

import "strings"

// rustBefore1 is in the User-Agent of azure_data_cosmos for Rust before its version 1. That client reads nearly all
// headers of a reply, and fails where one is missing. No other client does.
const rustBefore1 = "azsdk-rust-data_cosmos/0."

// replicaHeaders are those that the service sends with nearly every reply, and that this server leaves out elsewhere,
// with the values of the only replica there is. An empty value is one that isn't known here.
var replicaHeaders = []struct{ name, value string }{
	{hPartitionIndex, "0"},
	{hServiceIndex, "0"},
	{hServer, "orrery"},
	{hReplicas, "1"},
	{hWriteQuorum, "1"},
	{hReplicaRole, "1"},
	{hMediaMax, "2048"},
	{hMediaUsage, "0"},
	{hItemCount, "0"},
	{rSessionToken, "0:-1#0"},
	{hAltContentPath, ""},
	{hContentPath, ""},
	{hResourceQuota, ""},
	{hResourceUsage, ""},
}

// lsnHeaders have the reply's LSN: every commit is acknowledged by all replicas.
var lsnHeaders = []string{hLSN, hItemLSN, hCommittedLSN, hQuorumLSN, hLogicalLSN,
	hItemLogicalLSN, hQuorumLogicalLSN}

// setReplica adds the headers that a client before version 1 for Rust needs, if this is one.
func (c *call) setReplica() {
	if !strings.Contains(header(c.In, "User-Agent"), rustBefore1) {
		return
	}
	c.setVersions()
	lsn := "0"
	for _, name := range lsnHeaders { // hLSN is the first
		lsn = c.setMissing(name, lsn)
	}
	for _, h := range replicaHeaders {
		c.setMissing(h.name, h.value)
	}
}

// setMissing adds a reply header that isn't there yet, and returns its value.
func (c *call) setMissing(name, value string) string {
	if v := c.Take(name); v != "" {
		value = v
	}
	c.Set(name, value)
	return value
}
