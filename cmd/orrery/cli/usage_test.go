package cli

import "testing"

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
		{[]string{"health", "--admin", nobody}, 1, "no server answers at " + nobody + ": connect: connection refused"},
	} {
		if _, errOut := ran(t, c.code, c.args...); errOut != "orrery: "+c.want+"\n" {
			t.Errorf("%q: %q, want %q", c.args, errOut, c.want)
		}
	}
}
