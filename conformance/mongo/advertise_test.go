package mongo

import (
	"io"
	"net"
	"testing"

	"github.com/orrerydb/orrery/mongoapi"
)

// forward maps a free port to the address that to returns, and returns its own.
func forward(t *testing.T, to func() string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s, err := net.Dial("tcp", to())
				if err != nil {
					return
				}
				defer s.Close()
				go func() { _, _ = io.Copy(s, c); _ = s.Close() }()
				_, _ = io.Copy(c, s)
			}()
		}
	}()
	return ln.Addr().String()
}

// TestAdvertise: behind a mapped port, a driver that discovers the replica set stays on the port if the server
// advertises it, and with any string if that says directConnection=true.
func TestAdvertise(t *testing.T) {
	var s *server
	mapped := forward(t, func() string { return s.addr })
	for _, x := range []struct{ advertise, opts string }{
		{mapped, "replicaSet=globaldb"},
		{mapped, "directConnection=true"},
		{"", "directConnection=true"},
		{"", "replicaSet=globaldb&directConnection=true"},
	} {
		s = startWith(t, mongoapi.Options{Account: account, Key: key, Auth: true, Advertise: x.advertise})
		there := server{addr: mapped}
		cl := dial(t, there.uri(x.opts))
		var hello struct{ Me string }
		must(t, cl.Database("admin").RunCommand(bg, doc(t, `{"hello": 1}`)).Decode(&hello))
		if want := x.advertise; want != "" && hello.Me != want || want == "" && hello.Me != s.addr {
			t.Errorf("%+v: the server is %s", x, hello.Me)
		}
		fill(t, cl.Database("db").Collection("c"), `{"_id": 1}`)
	}
}
