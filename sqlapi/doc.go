// Package sqlapi is the NoSQL API: the document REST protocol that the official Cosmos DB SDKs speak.
//
// There is one file per resource. A request passes these steps:
//
//	the middlewares of internal/rest
//	begin         makes the request's call (call.go)
//	authenticate  checks the authorization (auth.go)
//	dispatch      selects the operation: a line of the route table, and its form (route.go, routes.go)
//	permit        checks the rights of a resource token (rights.go)
//	handler       serves the operation (the resource's file)
//
// Errors are converted to the service's status, sub-status and body in errors.go only. The query language is in
// sqlapi/sql.
//
// Rules for the hot path: request headers are read from the header map under their canonical keys (headers.go). The
// values of reply headers are substrings of one string. Bodies are appended to pooled buffers. Items are never decoded
// as a whole.
package sqlapi
