package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Wrong arguments, and a server that isn't there, are answered in words that say what is wanted.
func TestUsage(t *testing.T) {
	const nobody = "http://127.0.0.1:1"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"backup", "x"}, 2, "x: want no argument, only flags: orrery backup [flags]"},
		{[]string{"serve", "x"}, 2, "x: want no argument, only flags: orrery serve [flags]"},
		{[]string{"cert", "show", "x"}, 2, "x: want no argument, only flags: orrery cert show [flags]"},
		{[]string{"partitions"}, 2, "want one argument: orrery partitions DATABASE/CONTAINER [flags]"},
		{[]string{"partitions", "split", "a/b"}, 2,
			"want two arguments: orrery partitions split DATABASE/CONTAINER ID [flags]"},
		{[]string{"partitions", "a"}, 1, "a: want DATABASE/CONTAINER"},
		{[]string{"partitions", "a/b", "--endpoint", nobody}, 1,
			"no server answers at " + nobody + ": connect: connection refused"},
		{[]string{"query", "--db", "", "--container", "c", "SELECT 1"}, 2, "--db is empty"},
		{[]string{"tail", "a/b", "--endpoint", "localhost:8081"}, 2, "invalid argument \"localhost:8081\" for " +
			"\"--endpoint\" flag: want a URL with its scheme, such as http://127.0.0.1:8081"},
		{[]string{"health", "--admin", nobody}, 1, "no server answers at " + nobody + ": connect: connection refused"},
	} {
		if _, errOut := ran(t, c.code, c.args...); errOut != "orrery: "+c.want+"\n" {
			t.Errorf("%q: %q, want %q", c.args, errOut, c.want)
		}
	}
}

// A certificate that nobody trusts is no answer that is incomplete, and isn't tried again.
func TestUntrustedCertificate(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	want := "orrery: the certificate of " + s.URL + " isn't trusted: x509: certificate signed by unknown authority; " +
		"`orrery cert trust` says how it is\n"
	for _, args := range [][]string{{"query", "SELECT 1"}, {"export", "-"}} {
		args = append(args, "--db", "d", "--container", "c", "--endpoint", s.URL)
		if _, errOut := ran(t, 1, args...); errOut != want {
			t.Errorf("%q: %q, want %q", args, errOut, want)
		}
	}
}
