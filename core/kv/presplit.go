package kv

import "context"

// Presplitter is an Engine that keeps ranges of keys in different places, and can be told where ranges will begin.
type Presplitter interface {
	// Presplit prepares that a range begins at each of keys. It is a hint: if it fails, ranges are divided later, when
	// they have grown. It changes no keys.
	Presplit(ctx context.Context, keys [][]byte) error
}
