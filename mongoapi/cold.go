package mongoapi

import "github.com/orrerydb/orrery/core/bson"

// The functions that append to documents are made for many of them: the compiler copies them into each caller, some 150
// bytes a field. Replies about the server are long and rare, so these are called instead.

//go:noinline
func putString(dst []byte, key, s string) []byte { return bson.AppendString(dst, key, s) }

//go:noinline
func putInt32(dst []byte, key string, n int32) []byte { return bson.AppendInt32(dst, key, n) }

//go:noinline
func putInt64(dst []byte, key string, n int64) []byte { return bson.AppendInt64(dst, key, n) }

//go:noinline
func putDouble(dst []byte, key string, f float64) []byte { return bson.AppendDouble(dst, key, f) }

//go:noinline
func putBool(dst []byte, key string, b bool) []byte { return bson.AppendBool(dst, key, b) }

//go:noinline
func putDate(dst []byte, key string, ms int64) []byte { return bson.AppendDate(dst, key, ms) }

//go:noinline
func putObject(dst []byte, key string) (int, []byte) { return bson.BeginObject(dst, key) }

//go:noinline
func putEnd(dst []byte, at int) []byte { return bson.End(dst, at) }
