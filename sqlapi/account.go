package sqlapi

import (
	"net"
	"net/http"
	"strings"

	"github.com/orrerydb/orrery/core/json"
)

// accountID is the id in the account document, whatever the account's name is. It must not be "localhost": the
// JavaScript SDK would then drop the locations and read the account document before each operation.
const accountID = "orrery-local"

// queryEngineConfiguration is the value of the account document's member of that name: a JSON string that contains
// JSON. Clients only display it. The limits that this server enforces are in docs/compat/sql-rest.md.
const queryEngineConfiguration = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10,` +
	`"maxLogicalAndPerSqlQuery":500,"maxLogicalOrPerSqlQuery":500,` +
	`"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"queryMaxInMemorySortDocumentCount":500,` +
	`"maxQueryRequestTimeoutFraction":0.9,` +
	`"sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,` +
	`"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,` +
	`"sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,` +
	`"sqlDisableQueryILOptimization":false,` +
	`"sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}`

// readAccount answers the account document. Clients connect to the endpoints in it, so these have the scheme and the
// host of the request. Any port mapping works that way.
func readAccount(c *call) error {
	c.Charge = minCharge
	b := append(c.Out[:0], `{"_self":"","id":"`+accountID+`","_rid":"`+accountID+
		`.documents.azure.com","media":"//media/","addresses":"//addresses/","_dbs":"//dbs/","writableLocations":[`...)
	b = c.appendLocation(b)
	b = append(b, `],"readableLocations":[`...)
	b = c.appendLocation(b)
	b = append(b, `],"enableMultipleWriteLocations":false,"continuousBackupEnabled":false,`+
		`"enableNRegionSynchronousCommit":false,"enablePerPartitionFailoverBehavior":false,`+
		`"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"userConsistencyPolicy":{"defaultConsistencyLevel":"`+c.s.opt.Consistency+`"},`+
		`"systemReplicationPolicy":{"minReplicaSetSize":1,"maxReplicasetSize":4,"asyncReplication":false},`+
		`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},"queryEngineConfiguration":`...)
	b = json.AppendString(b, queryEngineConfiguration)
	c.Out = append(b, '}')
	c.setVersions()
	c.Set(hMediaMax, "2048") // of attachments; the first SDK for Java can't read the account without these two
	c.Set(hMediaUsage, "0")
	return c.send(http.StatusOK)
}

// setVersions adds the headers with the service's versions. Clients only log them, and each header costs time, so
// replies about items don't have them.
func (c *call) setVersions() {
	c.Set(hSchemaVersion, "1.21")
	c.Set(hServiceVersion, "version=2.14.0.0")
	c.Set(hGatewayVersion, "version=2.14.0")
	c.Set(hReadRegions, "0")
	c.Set(hStateChange, c.s.began)
	c.SetInt(hTransportID, int64(c.s.door.Requests()))
}

func (c *call) appendLocation(b []byte) []byte {
	scheme := "http"
	if c.Request.TLS != nil {
		scheme = "https"
	}
	if p := header(c.In, "X-Forwarded-Proto"); p == "https" || p == "http" {
		scheme = p
	}
	name := c.s.opt.Account
	if name == "" {
		name = accountID
	}
	b = append(b, `{"name":`...)
	b = json.AppendString(b, name)
	b = append(b, `,"databaseAccountEndpoint":`...)
	host := c.Request.Host
	if host == "" { // HTTP/1.0: no client could connect to an endpoint without one
		if at, ok := c.Request.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			host = at.String()
		}
	}
	b = json.AppendString(b, scheme+"://"+strings.TrimSuffix(host, "/")+"/")
	return append(b, '}')
}
