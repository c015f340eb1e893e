//go:build !linux

package mongoapi

import "runtime"

func thisMachine() machine {
	return machine{name: runtime.GOOS, extra: func(dst []byte) []byte { return dst }}
}
