package cli

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Wrappers that start a MongoDB pass flags of mongod. serve takes those that have a meaning here, each as another name
// of its own flag. They aren't shown in the help, and variables don't set them.
//
//	--replSet NAME    --mongo-replica-set NAME
//	--port N          the port of --mongo-addr
//	--bind_ip LIST    the host of --mongo-addr: the first of the list
//	--bind_ip_all     --mongo-addr on all interfaces, for which --key or --insecure is needed, as always
//	--dbpath DIR      --data DIR
//	--noauth          --auth=false
//
// mongod's other flags are refused, because a wrapper that passes them expects something.

// asMongod adds the flags of mongod.
func (s *serveCmd) asMongod(f *pflag.FlagSet) {
	host := func(h string) error {
		_, port, err := net.SplitHostPort(s.MongoAddr)
		if err != nil {
			return fmt.Errorf("--mongo-addr is %s", s.MongoAddr)
		}
		s.MongoAddr = net.JoinHostPort(h, port)
		return nil
	}
	for _, x := range []struct {
		name string
		set  func(string) error
		bool bool
	}{
		{"replSet", func(v string) error { s.Mongo.ReplicaSet = v; return nil }, false},
		{"dbpath", func(v string) error { s.Data = v; return nil }, false},
		{"bind_ip", func(v string) error { first, _, _ := strings.Cut(v, ","); return host(first) }, false},
		{"bind_ip_all", func(v string) error {
			if v != "true" {
				return nil
			}
			return host("0.0.0.0")
		}, true},
		{"port", func(v string) error {
			if n, err := strconv.ParseUint(v, 10, 16); err != nil || n == 0 {
				return fmt.Errorf("want a number of a port")
			}
			h, _, err := net.SplitHostPort(s.MongoAddr)
			s.MongoAddr = net.JoinHostPort(h, v)
			return err
		}, false},
		{"noauth", func(v string) error { s.Auth = v != "true"; return nil }, true},
	} {
		if f.Lookup(x.name) != nil {
			continue // the emulator has a port of its own
		}
		flag := f.VarPF(setter(x.set), x.name, "", "as of mongod")
		if flag.Hidden = true; x.bool {
			flag.NoOptDefVal = "true"
		}
	}
}

// setter is a flag that sets others.
type setter func(string) error

// Set implements pflag.Value.
func (s setter) Set(v string) error { return s(v) }

// String implements pflag.Value.
func (setter) String() string { return "" }

// Type implements pflag.Value.
func (setter) Type() string { return "string" }
