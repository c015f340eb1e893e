package recentlog

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// The last records are kept, and all go to the other handler.
func TestRecords(t *testing.T) {
	var l Log
	var text strings.Builder
	log := slog.New(l.Handler(slog.NewTextHandler(&text, nil)))
	log.Debug("not logged")
	log.With("a", 1).WithGroup("g").With("b", 2).Warn("first", "c", 3)
	total, recs := l.Records()
	if total != 1 || len(recs) != 1 || recs[0].Message != "first" || recs[0].Level != slog.LevelWarn {
		t.Fatal(total, recs)
	}
	var attrs []string
	recs[0].Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a.String())
		return true
	})
	if got := strings.Join(attrs, " "); got != "a=1 g.b=2 g.c=3" || !strings.Contains(text.String(), got) {
		t.Errorf("%s, and the log has %s", got, text.String())
	}
	for i := range 3 * kept / 2 {
		log.Info(fmt.Sprint(i))
	}
	total, recs = l.Records()
	if total != 1+3*kept/2 || len(recs) != kept {
		t.Fatal(total, len(recs))
	}
	for i, r := range recs {
		if want := fmt.Sprint(3*kept/2 - kept + i); r.Message != want {
			t.Fatalf("record %d is %s, not %s", i, r.Message, want)
		}
	}
}
