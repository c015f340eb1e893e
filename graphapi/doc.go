// Package graphapi serves the Gremlin API: a WebSocket server that speaks the Gremlin Server protocol in all its
// serializers (graphbinary, graphson), logins by SASL, scripts and bytecode, sessions.
//
// Two flavours share one door. A client that logs in as /dbs/<database>/colls/<graph> is an application of the cloud
// service: it gets the service's answers (200 with an empty list, untyped GraphSON, error texts in the service's
// layout). Every other client is a TinkerPop client and gets Gremlin Server's.
//
// The way of a request, which is one message.Request from its frame to its last step:
//
//	conn.read     reads a frame, splits it into mime type and body         frame.go, conn.go
//	codec         decodes the body to a message.Request                    wire/graphbinary, wire/graphson
//	conn.admit    answers challenges, or keeps the request until login     auth.go
//	dispatch      looks up the operation and checks its arguments          ops.go
//	evaluate      runs it beside the read loop, streams chunks of results  eval.go
//	serveHTTP     the same for one request over plain HTTP                 http.go
//	run.Run       parses, compiles and runs the traversal                  traversal/run
//	failure       the one table that turns an error into an answer         errors.go
//
// The rooms, each of which imports only rooms further down:
//
//	graphapi            the door: connections, logins, sessions, chunks
//	traversal/run       steps: how each is made of an instruction, and how it runs
//	traversal/compile   instructions to instructions: strategies, and what a look-up can be asked; knows no store
//	graph               vertices and edges as items of the core: stored form, ids, look-ups, the store
//	gremlin             scripts to instructions
//	wire/graphbinary    the serializers
//	wire/graphson
//	wire/message        requests and responses
//	gvalue              the values of the language, bytecode
//
// How a step is made and how it runs are not two rooms. A step's function closes over its arguments and nested
// traversals, and a nested traversal is made by the same table of steps; a variable may hold a traversal that must run
// before the one around it can be made. So each step would be two entries in two rooms, which have to agree. As it is a
// step is one function, one line in traversal/run/registry.go, and its cases in traversal/run/testdata.
package graphapi
