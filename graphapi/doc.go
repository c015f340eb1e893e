// Package graphapi serves the Gremlin API: a WebSocket server that speaks the Gremlin Server protocol in all its serializers
// (graphbinary, graphson), logins by SASL, scripts and bytecode, sessions.
//
// Two flavours share one door. A client that logs in as /dbs/<database>/colls/<graph> is an application of the cloud service:
// it gets the service's answers (200 with an empty list, untyped GraphSON, error texts in the service's layout). Every other
// client is a TinkerPop client and gets Gremlin Server's.
//
// The way of a request, which is one message.Request from its frame to its last step:
//
//	conn.read     reads a frame, splits it into mime type and body         frame.go, conn.go
//	codec         decodes the body to a message.Request                    graphbinary, graphson
//	conn.admit    answers challenges, or keeps the request until login     auth.go
//	dispatch      looks up the operation and checks its arguments          ops.go
//	evaluate      runs it beside the read loop, streams chunks of results  eval.go
//	serveHTTP     the same for one request over plain HTTP                 http.go
//	failure       the one table that turns an error into an answer         errors.go
package graphapi
