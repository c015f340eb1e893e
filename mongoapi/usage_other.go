//go:build !unix

package mongoapi

func usage() []named { return nil }
