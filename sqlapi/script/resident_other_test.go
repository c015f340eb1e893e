//go:build !linux

package script_test

import "github.com/orrerydb/orrery/sqlapi/script"

// residentOf is unknown here.
func residentOf(*script.Pool) int64 { return 0 }
