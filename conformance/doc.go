// Package conformance tests Orrery's doors with the official clients. It is a separate module, so that the clients'
// SDKs aren't in the binary's go.mod. It is the only importer of these SDKs.
//
// Each folder is one area. sql, table, graph and mongo use one client each. cross writes through one API and reads
// through the others, with the edge values of shareddata. model tests the promises of modelling and partitioning, and
// known those that aren't kept yet, as expected failures. guides runs the examples of the docs. linearize kills the
// server while three APIs change the same items. many sends each request to another one of several servers over one
// store. terminal runs the command line on a pseudo-terminal. clients has the runs in other languages. harness starts a
// complete server with clients of all APIs. script has requests and replies as text, for clients that can't be run
// here.
package conformance

import (
	_ "github.com/Azure/azure-sdk-for-go/sdk/azcore"
	_ "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	_ "github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	_ "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	_ "go.mongodb.org/mongo-driver/v2/mongo"
)
