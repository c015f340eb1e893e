package core_test

import (
	"fmt"
)

// compositePolicy indexes everything and has composite indexes. Each is a list of paths; a minus marks descending ones.
func compositePolicy(composites ...[]string) []byte {
	b := []byte(`{"indexingMode":"consistent","includedPaths":[{"path":"/*"}],"excludedPaths":[],"compositeIndexes":[`)
	for i, paths := range composites {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for j, p := range paths {
			if j > 0 {
				b = append(b, ',')
			}
			order := "ascending"
			if p[0] == '-' {
				p, order = p[1:], "descending"
			}
			b = fmt.Appendf(b, `{"path":"/%s","order":%q}`, p, order)
		}
		b = append(b, ']')
	}
	return append(b, "]}"...)
}
