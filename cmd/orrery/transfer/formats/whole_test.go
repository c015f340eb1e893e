package formats

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
	"github.com/orrerydb/orrery/core/doc"
)

// An archive that was cut off anywhere ends with an error, also between two collections, where no block is open.
func TestArchiveCutOff(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "a.archive")
	w, err := archive.Write(&Output{Options: &Options{Door: Mongo, Place: "shop/orders"}, Path: whole})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d, err := doc.FromExtJSON(nil, []byte(`{"_id":1}`))
		if err == nil {
			err = w.Add(&transfer.Row{Doc: d})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	ends := func(n int) error {
		cut := filepath.Join(dir, "cut")
		if err := os.WriteFile(cut, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := transfer.OpenInput(cut, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(in, archive, &Options{Door: Mongo})
		for err == nil {
			err = r.Next(&transfer.Row{})
		}
		return err
	}
	for n := range text {
		// Without the last terminator everything is there.
		if err := ends(n); n < len(text)-len(endOfBlock) && errors.Is(err, io.EOF) {
			t.Errorf("cut off at %d of %d bytes: no error", n, len(text))
		}
	}
	if err := ends(len(text)); err != io.EOF {
		t.Errorf("the whole archive: %v", err)
	}
}

// A file that can't be completed keeps the name of one that isn't complete.
func TestNoNameBeforeTheEnd(t *testing.T) {
	for _, f := range []*Format{csvFormat, tablecsv, graphml, graphcsv} {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		w, err := f.Write(&Output{Options: &Options{Door: f.Door, Place: "d/c"}, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		var spools []*spool
		row := &transfer.Row{Text: []byte(`{"PartitionKey":"p","RowKey":"r","id":"a"}`)}
		switch w := w.(type) {
		case *csvWriter:
			spools = []*spool{w.spool}
		case *tableWriter:
			spools = []*spool{w.spool}
		case *graphmlWriter:
			spools = []*spool{w.spool}
		case *graphcsvWriter:
			spools = w.spool[:]
		}
		if f.Door == Graph {
			d, err := vertexDocOf("a")
			if err != nil {
				t.Fatal(err)
			}
			row = &transfer.Row{Doc: d}
		}
		if err := w.Add(row); err != nil {
			t.Fatal(err)
		}
		for _, s := range spools { // as a full disk does
			if err := s.f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err == nil {
			t.Errorf("%s: no error", f.Name)
		}
		for _, name := range []string{"out", "out/vertices.csv", "out/edges.csv"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
				t.Errorf("%s: %s has its name with %d bytes", f.Name, name, info.Size())
			}
		}
	}
}

func vertexDocOf(id string) ([]byte, error) {
	els, err := graphsonElements([]byte(`{"id":"` + id + `","label":"l"}`))
	if err != nil {
		return nil, err
	}
	return vertexDoc(els.vertices[0])
}
