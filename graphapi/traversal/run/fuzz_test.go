package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// FuzzRun: any script gives results, an *Error or a *status.Error. It never panics and never exceeds its timeout.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds")
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split(string(b), "\n\n") {
			if s, _, ok := strings.Cut(strings.TrimPrefix(block, "run\n"), "\n----"); ok {
				f.Add(s)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		w := &world{t: t}
		w.load("modern")
		start, n := time.Now(), 0
		_, err := run.Run(context.Background(), w.g, &message.Request{Script: src, Timeout: 200 * time.Millisecond},
			func(any, int64) error { n++; return nil })
		var se *run.Error
		var ce *status.Error
		if err != nil && !errors.As(err, &se) && !errors.As(err, &ce) {
			t.Fatalf("foreign error: %v", err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("it took %v", d)
		}
	})
}
