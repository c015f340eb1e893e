// Package sqlapi is the NoSQL API: the document REST protocol that the official Cosmos DB SDKs speak.
//
// One file per resource. A request goes: path to route (route.go), signature (auth.go), handler (the resource's file),
// reply (call.go); errors become the service's status, sub-status and body in errors.go and nowhere else. The language
// itself is in sqlapi/sql.
//
// Hot path rules of this package: request headers are read from the header map under their canonical keys (headers.go),
// reply headers are cut out of one string, bodies are appended to pooled buffers, and items are never decoded as a whole.
package sqlapi
