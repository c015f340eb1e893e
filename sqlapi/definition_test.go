package sqlapi

import (
	"bytes"
	"testing"

	"github.com/orrerydb/orrery/core/status"
)

// FuzzDefinition: any bytes are a definition or a 400, and what is kept is its own definition: sending it again changes
// nothing.
func FuzzDefinition(f *testing.F) {
	for _, s := range []string{`{"id":"c"}`, `{"id":"c","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash"}}`, `{"id":"c","indexingPolicy":{"includedPaths":[{"path":"/\"a b\"/[]/?"}],"excludedPaths":[{"path":"/*"}]}}`,
		`{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]},"defaultTtl":5,"computedProperties":[]}`, `{"id":"c","indexingPolicy":{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]]}}`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		spec, err := parseDefinition(body, nil)
		if err != nil {
			if code := status.CodeOf(err); code != status.BadRequest && code != status.NotFound {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		again, err := normalIndexing(spec.IndexingPolicy)
		if err != nil || !bytes.Equal(again, spec.IndexingPolicy) {
			t.Fatalf("%s comes back as %s, %v", spec.IndexingPolicy, again, err)
		}
	})
}

// FuzzPartitionKey: any header is a key or a 400.
func FuzzPartitionKey(f *testing.F) {
	for _, s := range []string{`["a"]`, `[{}]`, `[null,1,true]`, `["\U0001f600\x7f\a"]`, `[]`, `["\U`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := parsePartitionKey(nil, s); err != nil && !status.Is(err, status.BadRequest) {
			t.Fatalf("%q: %v", s, err)
		}
	})
}
