package tikvkv

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/pingcap/log"
	"go.uber.org/zap"
)

// What the client repeats is logged a few times, what it says once is not lost, and what is no error is not logged.
func TestRepeatedErrorsAreLoggedOnce(t *testing.T) {
	replaceLogger()
	var out bytes.Buffer
	before := target.Swap(slog.New(slog.NewTextHandler(&out, nil)))
	for n := range 1000 {
		log.Error("the same text again", zap.Int("n", n))
		log.Warn("no error")
	}
	log.Error("another text", zap.String("why", "it ends"))
	target.Store(before)
	if n := strings.Count(out.String(), "the same text again"); n != repeats {
		t.Errorf("an error that was repeated 1000 times has %d lines, want %d", n, repeats)
	}
	if !strings.Contains(out.String(), `msg="tikv client: another text" why="it ends"`) ||
		strings.Contains(out.String(), "no error") {
		t.Errorf("logged:\n%s", out.String())
	}
}
