package server

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/orrerydb/orrery/mongoapi"
)

// The topologies that the MongoDB API may announce.
const (
	ReplicaSet = "replicaset" // a replica set with one member
	Standalone = "standalone" // a single server
)

// MongoFlags are the flags of the MongoDB API alone.
type MongoFlags struct {
	Topology     string // ReplicaSet or Standalone; "" = ReplicaSet
	Release      string // the release of MongoDB that is announced; "" = the default
	ReplicaSet   string // the name of the replica set; "" = the service's
	Advertise    string // the address that clients are told, as host:port; "" = the one that they have dialled
	JavaScript   bool   // run programs of clients
	TestCommands bool   // enable the commands with which tests make the server fail
}

// Flags adds the flags.
func (m *MongoFlags) Flags(f *pflag.FlagSet) {
	f.StringVar(&m.Topology, "mongo-topology", ReplicaSet, "What the MongoDB API announces: replicaset, one with one "+
		"member, or standalone, a server without retryable writes.")
	f.StringVar(&m.Release, "mongo-version", mongoapi.DefaultRelease, "The `VERSION` that the MongoDB API announces: "+
		strings.Join(mongoapi.Releases(), " or ")+". Drivers have a bulkWrite of the client from 8.0 on.")
	f.StringVar(&m.ReplicaSet, "mongo-replica-set", mongoapi.DefaultSetName, "`NAME` of the MongoDB replica set.")
	f.StringVar(&m.Advertise, "mongo-advertise", "", "`HOST:PORT` of the MongoDB API as its clients reach it, behind "+
		"a mapped port. The default is the address that a client has dialled.")
	f.BoolVar(&m.JavaScript, "mongo-javascript", false, "Run JavaScript of MongoDB clients: $where, $function, "+
		"$accumulator, mapReduce.")
	f.BoolVar(&m.TestCommands, "test-commands", false, "Enable the commands with which the tests of MongoDB drivers "+
		"make the server fail (configureFailPoint).")
}

// validate checks the flags. Its errors are written for the user and name the flag.
func (m *MongoFlags) validate() error {
	switch m.Topology {
	case "", ReplicaSet, Standalone:
	default:
		return fmt.Errorf("--mongo-topology %q: want %s or %s", m.Topology, ReplicaSet, Standalone)
	}
	if m.Release != "" && !slices.Contains(mongoapi.Releases(), m.Release) {
		return fmt.Errorf("--mongo-version %q: want %s", m.Release, strings.Join(mongoapi.Releases(), " or "))
	}
	if strings.ContainsAny(m.ReplicaSet, "/&?#, ") {
		return fmt.Errorf("--mongo-replica-set %q: want a plain name", m.ReplicaSet)
	}
	if m.Advertise == "" {
		return nil
	}
	if host, port, err := net.SplitHostPort(m.Advertise); err != nil || host == "" || port == "" {
		return fmt.Errorf("--mongo-advertise %q: want host:port", m.Advertise)
	}
	return nil
}
