//go:build !linux

package script_test

import (
	"testing"
	"time"

	"github.com/orrerydb/orrery/sqlapi/script"
)

// cpu is unknown here.
func cpu(*testing.B, *script.Pool) time.Duration { return 0 }
