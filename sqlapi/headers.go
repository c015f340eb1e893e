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
	hIfMatch         = "If-Match"
	hIfNoneMatch     = "If-None-Match"
	hAIM             = "A-Im"
	hIfModifiedSince = "If-Modified-Since"
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
