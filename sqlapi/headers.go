package sqlapi

import "net/http"

// Request headers under their canonical keys: net/http has canonicalised what the client sent, so a map look-up is enough.
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
	hThroughput      = "X-Ms-Offer-Throughput"
	hAutopilot       = "X-Ms-Cosmos-Offer-Autopilot-Settings"
	hToAutopilot     = "X-Ms-Cosmos-Migrate-Offer-To-Autopilot"
	hToManual        = "X-Ms-Cosmos-Migrate-Offer-To-Manual-Throughput"
	hQuotaInfo       = "X-Ms-Documentdb-Populatequotainfo"
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

// Reply headers; those that are request headers too have their names above.
const (
	hCharge         = "X-Ms-Request-Charge"
	hSubStatus      = "X-Ms-Substatus"
	hETag           = "Etag"
	hItemCount      = "X-Ms-Item-Count"
	hRetryAfter     = "X-Ms-Retry-After-Ms"
	hLSN            = "Lsn"
	hContentPath    = "X-Ms-Content-Path"
	hAltContentPath = "X-Ms-Alt-Content-Path"
	hIndexUse       = "X-Ms-Cosmos-Index-Utilization"
	hExecutionInfo  = "X-Ms-Cosmos-Query-Execution-Info"
	hPhysicalID     = "X-Ms-Cosmos-Physical-Partition-Id"
	hCommittedLSN   = "X-Ms-Global-Committed-Lsn"
	hReadRegions    = "X-Ms-Number-Of-Read-Regions"
	hTransportID    = "X-Ms-Transport-Request-Id"
	hStateChange    = "X-Ms-Last-State-Change-Utc"
	hLazyProgress   = "X-Ms-Documentdb-Collection-Lazy-Indexing-Progress"
	hReplacePending = "X-Ms-Offer-Replace-Pending"
	hMetrics        = "X-Ms-Documentdb-Query-Metrics"
	hResourceQuota  = "X-Ms-Resource-Quota"
	hResourceUsage  = "X-Ms-Resource-Usage"
	hIndexProgress  = "X-Ms-Documentdb-Collection-Index-Transformation-Progress"
	hMinThroughput  = "X-Ms-Cosmos-Min-Throughput"
	hSchemaVersion  = "X-Ms-Schemaversion"
	hServiceVersion = "X-Ms-Serviceversion"
	hGatewayVersion = "X-Ms-Gatewayversion"
	hContentLength  = "Content-Length"
)

// Header values that never change, shared by all replies: net/http only reads them.
var (
	vJSON           = []string{"application/json"}
	vSchemaVersion  = []string{"1.21"}
	vServiceVersion = []string{"version=2.14.0.0"}
	vGatewayVersion = []string{"version=2.14.0"}
	vReadRegions    = []string{"0"}
	vFalse          = []string{"false"}

	// How rows that are equal in ORDER BY come: with the first key. Clients that resume inside such rows go by it.
	vForward  = []string{`{"reverseRidEnabled":false,"reverseIndexScan":false}`}
	vBackward = []string{`{"reverseRidEnabled":false,"reverseIndexScan":true}`}
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
