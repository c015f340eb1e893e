package formats

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/doc"
)

// Every reader ends on every input, with rows that are well formed.
func FuzzReaders(f *testing.F) {
	magic := binary.LittleEndian.AppendUint32(nil, archiveMagic)
	prelude := append(append([]byte(nil), magic...), "\x05\x00\x00\x00\x00\xff\xff\xff\xff"...)
	for _, seed := range []string{"", "{}", `[{"id":"1"},{"a":[{}]}]`, "a,b:json\n1,\"[1]\"\n", "\x05\x00\x00\x00\x00",
		string(prelude), "\x1f\x8b", `{"value":[{"x":"\u0000"}]}`, "id\n\"\n", "{\"a\":{\"$date\":\"x\"}}\n",
		"<graphml><graph><node id=\"1\"/></graph></graphml>", "~id,~label,n:Int\n1,p,2\n",
		"PartitionKey,RowKey,A,A@type\np,r,1,Edm.Int32\n", `{"id":1,"label":"p","outE":{"k":[{"id":2,"inV":3}]}}`} {
		for i := range All {
			f.Add(uint8(i), []byte(seed))
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, which uint8, input []byte) {
		format := All[int(which)%len(All)]
		for _, door := range []string{NoSQL, Mongo} {
			path := filepath.Join(dir, "input")
			if err := os.WriteFile(path, input, 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := transfer.OpenInput(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Open(in, format, &Options{Door: door, Types: true, Nested: "."})
			if err != nil {
				continue
			}
			for range len(input) + 10 {
				var row transfer.Row
				err := r.Next(&row)
				var bad *transfer.Bad
				if err != nil && !errors.As(err, &bad) {
					break
				}
				if err != nil {
					continue
				}
				if row.Doc == nil && row.Text == nil {
					t.Fatal("a row without content")
				}
				if row.Doc != nil && doc.Validate(row.Doc, 0) != nil {
					t.Fatalf("a row that is no document: %x", row.Doc)
				}
			}
			if err := r.Next(&transfer.Row{}); err == nil {
				t.Fatal("more rows than bytes")
			} else if err != io.EOF {
				_ = err
			}
			_ = r.Close()
		}
	})
}
