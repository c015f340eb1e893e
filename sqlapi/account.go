package sqlapi

import (
	"net/http"
	"strings"

	"github.com/orrerydb/orrery/core/json"
)

// accountID is the id in the account document. It is never "localhost", whatever the account is called: the JavaScript
// SDK then throws the locations away and reads the account document before every operation.
const accountID = "orrery-local"

// queryEngineConfiguration is the text of that member: a JSON string that holds JSON. Clients only show it; what is
// enforced is in docs/compat/sql-rest.md.
const queryEngineConfiguration = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10,` +
	`"maxLogicalAndPerSqlQuery":500,"maxLogicalOrPerSqlQuery":500,` +
	`"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"queryMaxInMemorySortDocumentCount":500,` +
	`"maxQueryRequestTimeoutFraction":0.9,` +
	`"sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,` +
	`"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,` +
	`"sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,` +
	`"sqlDisableQueryILOptimization":false,` +
	`"sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}`

// readAccount answers the account document. Endpoints echo the scheme and the host of the request, so that any port
// mapping works: clients dial what stands here.
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
	return c.send(http.StatusOK)
}

// setVersions adds what says of the service which one it is. Clients log it at most, and each header costs its
// microsecond: replies about items go without.
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
	b = json.AppendString(b, scheme+"://"+strings.TrimSuffix(c.Request.Host, "/")+"/")
	return append(b, '}')
}
