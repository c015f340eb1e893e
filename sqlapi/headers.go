package sqlapi

import "net/http"

// Request headers under their canonical keys. net/http has canonicalised the client's headers, so a map look-up finds
// them.
const (
	hAuthorization   = "Authorization"
	hDate            = "X-Ms-Date"
	hPlainDate       = "Date"
	hVersion         = "X-Ms-Version"
	hPartitionKey    = "X-Ms-Documentdb-Partitionkey"
	hRangeID         = "X-Ms-Documentdb-Partitionkeyrangeid"
	hStartEPK        = "X-Ms-Start-Epk"
	hEndEPK          = "X-Ms-End-Epk"
	hCrossPartition  = "X-Ms-Documentdb-Query-Enablecrosspartition"
	hEnableScan      = "X-Ms-Documentdb-Query-Enable-Scan"
	hForceScan       = "X-Ms-Documentdb-Force-Query-Scan"
	hIsQuery         = "X-Ms-Documentdb-Isquery"
	hQuery           = "X-Ms-Documentdb-Query"
	hIsPlan          = "X-Ms-Cosmos-Is-Query-Plan-Request"
	hPlanFeatures    = "X-Ms-Cosmos-Supported-Query-Features"
	hIsUpsert        = "X-Ms-Documentdb-Is-Upsert"
	hIsBatch         = "X-Ms-Cosmos-Is-Batch-Request"
	hBatchAtomic     = "X-Ms-Cosmos-Batch-Atomic"
	hBatchContinue   = "X-Ms-Cosmos-Batch-Continue-On-Error"
	hMaxItems        = "X-Ms-Max-Item-Count"
	hContinuation    = "X-Ms-Continuation"
	hTokenLimit      = "X-Ms-Documentdb-Responsecontinuationtokenlimitinkb"
	hIfMatch         = "If-Match"
	hIfNoneMatch     = "If-None-Match"
	hAIM             = "A-Im"
	hIfModifiedSince = "If-Modified-Since"
	hWireFormat      = "X-Ms-Cosmos-Changefeed-Wire-Format-Version"
	hPrefer          = "Prefer"
	hSessionToken    = "X-Ms-Session-Token"
	hConsistency     = "X-Ms-Consistency-Level"
	hIndexing        = "X-Ms-Indexing-Directive"
	hPreTrigger      = "X-Ms-Documentdb-Pre-Trigger-Include"
	hPostTrigger     = "X-Ms-Documentdb-Post-Trigger-Include"
	hScriptLog       = "X-Ms-Documentdb-Script-Enable-Logging"
	hThroughput      = "X-Ms-Offer-Throughput"
	hAutopilot       = "X-Ms-Cosmos-Offer-Autopilot-Settings"
	hToAutopilot     = "X-Ms-Cosmos-Migrate-Offer-To-Autopilot"
	hToManual        = "X-Ms-Cosmos-Migrate-Offer-To-Manual-Throughput"
	hQuotaInfo       = "X-Ms-Documentdb-Populatequotainfo"
	hStatistics      = "X-Ms-Documentdb-Populatepartitionstatistics"
	hIndexMetrics    = "X-Ms-Cosmos-Populateindexmetrics"
	hIndexMetrics2   = "X-Ms-Cosmos-Populateindexmetrics-V2"
	hExplain         = "X-Orrery-Explain"
	hStrict          = "X-Orrery-Strict"
	hQueryMetrics    = "X-Ms-Documentdb-Populatequerymetrics"
	hIntendedRID     = "X-Ms-Cosmos-Intended-Collection-Rid"
	hTokenExpiry     = "X-Ms-Documentdb-Expiry-Seconds"
	hActivityID      = "X-Ms-Activity-Id"
	hContentType     = "Content-Type"
)

// Reply headers in the service's spelling, because some clients look them up in case-sensitive maps. Names that begin
// with r are request headers too.
const (
	rRangeID          = "x-ms-documentdb-partitionkeyrangeid"
	rContinuation     = "x-ms-continuation"
	rSessionToken     = "x-ms-session-token"
	rActivityID       = "x-ms-activity-id"
	rExplain          = "x-orrery-explain"
	hCharge           = "x-ms-request-charge"
	hDuration         = "x-ms-request-duration-ms"
	hItemLSN          = "x-ms-item-lsn"
	hSubStatus        = "x-ms-substatus"
	hETag             = "etag"
	hItemCount        = "x-ms-item-count"
	hRetryAfter       = "x-ms-retry-after-ms"
	hLSN              = "lsn"
	hContentPath      = "x-ms-content-path"
	hAltContentPath   = "x-ms-alt-content-path"
	hIndexUse         = "x-ms-cosmos-index-utilization"
	hExecutionInfo    = "x-ms-cosmos-query-execution-info"
	hPhysicalID       = "x-ms-cosmos-physical-partition-id"
	hCommittedLSN     = "x-ms-global-committed-lsn"
	hReadRegions      = "x-ms-number-of-read-regions"
	hTransportID      = "x-ms-transport-request-id"
	hStateChange      = "x-ms-last-state-change-utc"
	hLazyProgress     = "x-ms-documentdb-collection-lazy-indexing-progress"
	hReplacePending   = "x-ms-offer-replace-pending"
	hMetrics          = "x-ms-documentdb-query-metrics"
	hResourceQuota    = "x-ms-resource-quota"
	hResourceUsage    = "x-ms-resource-usage"
	hScriptLogResults = "x-ms-documentdb-script-log-results"
	hIndexProgress    = "x-ms-documentdb-collection-index-transformation-progress"
	hMinThroughput    = "x-ms-cosmos-min-throughput"
	hSchemaVersion    = "x-ms-schemaversion"
	hServiceVersion   = "x-ms-serviceversion"
	hGatewayVersion   = "x-ms-gatewayversion"
	hMediaMax         = "x-ms-max-media-storage-usage-mb"
	hMediaUsage       = "x-ms-media-storage-usage-mb"
	hContentLength    = "Content-Length"
	hServer           = "server"
	hPartitionIndex   = "collection-partition-index"
	hServiceIndex     = "collection-service-index"
	hReplicas         = "x-ms-current-replica-set-size"
	hWriteQuorum      = "x-ms-current-write-quorum"
	hReplicaRole      = "x-ms-xp-role"
	hQuorumLSN        = "x-ms-quorum-acked-lsn"
	hLogicalLSN       = "x-ms-cosmos-llsn"
	hItemLogicalLSN   = "x-ms-cosmos-item-llsn"
	hQuorumLogicalLSN = "x-ms-cosmos-quorum-acked-llsn"
)

// vJSON is the content type of nearly all replies; net/http only reads it.
var vJSON = []string{"application/json"}

// vBytes is the content type of results in a binary form.
var vBytes = []string{"application/octet-stream"}

// The direction of rows with equal ORDER BY values: that of the first expression. Clients that resume between such rows
// use it.
const (
	forward  = `{"reverseRidEnabled":false,"reverseIndexScan":false}`
	backward = `{"reverseRidEnabled":false,"reverseIndexScan":true}`
)

// header returns the first value under a canonical key, "" when absent.
func header(h http.Header, key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// isTrue reports whether a header holds true in any case: SDKs send "true" and "True".
func isTrue(h http.Header, key string) bool {
	v := header(h, key)
	return len(v) == 4 && v[0]|0x20 == 't' && v[1]|0x20 == 'r' && v[2]|0x20 == 'u' && v[3]|0x20 == 'e'
}
