// Package sqlapi is the NoSQL API: the document REST protocol that the official Cosmos DB SDKs speak.
//
// One file per resource. A request goes through the middlewares of internal/rest, of which this package adds one that
// makes its call (call.go) and one that finds out who asks (auth.go); then to the line of the route table
// (routes.go), which gives the operation by the request's form, to what a resource token must allow for it
// (rights.go), and to the handler in the resource's file. Errors become the service's status, sub-status and body in
// errors.go and nowhere else. The language itself is in sqlapi/sql.
//
// Hot path rules of this package: request headers are read from the header map under their canonical keys (headers.go),
// reply headers are cut out of one string, bodies are appended to pooled buffers, and items are never decoded as a
// whole.
package sqlapi
