package update

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Show prints a value for an error message, as merr.Show does.
func Show(v value.Value) string { return merr.Show(v) }
