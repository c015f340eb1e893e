package run

import (
	"testing"

	"github.com/orrerydb/orrery/core/status"
)

// Only the error for an id that exists is told in other words.
func TestTaken(t *testing.T) {
	d := &draft{id: "a%d"}
	for _, x := range []struct {
		err  error
		want string
	}{
		{errTaken(), "Vertex with id already exists: a%d"},
		{status.New(status.Conflict, "Unique index constraint violation."), "Unique index constraint violation."},
		{status.New(status.TooLarge, msgTaken), msgTaken},
	} {
		if got := taken(x.err, "Vertex", d); got.(*status.Error).Msg != x.want ||
			got.(*status.Error).Code != x.err.(*status.Error).Code {
			t.Errorf("%v: %v", x.err, got)
		}
	}
}
