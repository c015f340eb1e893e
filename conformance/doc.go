// Package conformance runs Orrery's doors through the official clients. It is a module of its own, so that the clients'
// SDKs stay out of the binary's go.mod; it is the only importer of them.
//
// Each folder is one area: sql, table, graph and mongo use one client each; cross writes by one API and reads by the
// others, with the edge values of shareddata; model runs the promises of modelling and partitioning, and known those
// that aren't kept yet, as expected failures; guides runs the examples of docs; linearize kills the server while three
// APIs change the same items; clients holds the runs in other languages. harness starts a whole server with clients of
// all APIs. script holds requests and replies as text, for clients that can't be run here.
package conformance

import (
	_ "github.com/Azure/azure-sdk-for-go/sdk/azcore"
	_ "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	_ "github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	_ "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	_ "go.mongodb.org/mongo-driver/v2/mongo"
)
