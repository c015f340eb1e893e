// Package graphapi serves the Gremlin API: a WebSocket server for the Gremlin Server protocol with all its serializers
// (graphbinary, graphson), SASL logins, scripts and bytecode, and sessions.
//
// It has two flavours. A client that logs in as /dbs/<database>/colls/<graph> is an application of the cloud service.
// It gets the service's replies: 200 with an empty list, untyped GraphSON, error texts in the service's layout. All
// other clients are TinkerPop clients and get the replies of Gremlin Server.
//
// The steps of a request, which is one message.Request from its frame to its last step:
//
//	conn.read     reads a frame, splits it into mime type and body         frame.go, conn.go
//	codec         decodes the body to a message.Request                    wire/graphbinary, wire/graphson
//	conn.admit    answers challenges, or keeps the request until login     auth.go
//	dispatch      looks up the operation and checks its arguments          ops.go
//	evaluate      runs it beside the read loop, streams chunks of results  eval.go
//	serveHTTP     the same for one request over plain HTTP                 http.go
//	run.Run       parses, compiles and runs the traversal                  traversal/run
//	failure       the one table that turns an error into a reply           errors.go
//
// The packages, each of which imports only packages further down:
//
//	graphapi            the door: connections, logins, sessions, chunks
//	traversal/run       steps: how each is made from an instruction, and how it runs
//	traversal/compile   instructions to instructions: strategies, and index conditions; doesn't use the store
//	graph               vertices and edges as items of the core: stored form, ids, look-ups, the store
//	gremlin             scripts to instructions
//	wire/graphbinary    the serializers
//	wire/graphson
//	wire/message        requests and responses
//	gvalue              the values of the language, bytecode
//
// Compiling and running a step are in the same package. The function of a step closes over its arguments and nested
// traversals, and nested traversals are compiled by the same table of steps. A variable may contain a traversal that
// must run before the traversal around it can be compiled. In two packages each step would need two entries that must
// agree. In one package a step is one function, one line in traversal/run/registry.go, and its cases in
// traversal/run/testdata.
package graphapi
