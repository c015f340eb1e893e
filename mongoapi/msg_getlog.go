package mongoapi

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// getLog shows the last records of the process's log, all of them ("global") or the warnings from before the server
// began ("startupWarnings").
func getLog(r *request, dst []byte) ([]byte, error) {
	if err := r.adminOnly(); err != nil {
		return dst, err
	}
	total, recs := 0, []slog.Record(nil)
	if l := r.s.o.Log; l != nil {
		total, recs = l.Records()
	}
	switch r.arg.Str() {
	case "*":
		return bson.AppendStrings(dst, "names", "global", "startupWarnings"), nil
	case "global":
	case "startupWarnings":
		recs = r.s.startupWarnings
		total = len(recs)
	default:
		return dst, merr.New(merr.OperationFailed, "no RamLog named: %s", r.arg.Str())
	}
	lines := make([]value.Value, len(recs))
	for i := range recs {
		lines[i] = value.StringOf(logLine(&recs[i]))
	}
	dst = bson.AppendInt32(dst, "totalLinesWritten", int32(total))
	return value.AppendElement(dst, "log", value.MakeArray(lines)), nil
}

// severities are the severities of MongoDB's log.
var severities = map[slog.Level]string{slog.LevelDebug: "D1", slog.LevelInfo: "I", slog.LevelWarn: "W",
	slog.LevelError: "E"}

// logLine returns a record as a line of MongoDB's structured log, which shells and other programs parse.
//
// Example: {"t":{"$date":"2026-01-02T03:04:05.678Z"},"s":"W","c":"-","id":0,"ctx":"-","msg":"no room","attr":{"n":1}}
func logLine(rec *slog.Record) string {
	type date struct {
		Date string `json:"$date"`
	}
	line := struct {
		T    date           `json:"t"`
		S    string         `json:"s"`
		C    string         `json:"c"`
		ID   int            `json:"id"`
		Ctx  string         `json:"ctx"`
		Msg  string         `json:"msg"`
		Attr map[string]any `json:"attr,omitempty"`
	}{T: date{rec.Time.UTC().Format("2006-01-02T15:04:05.000Z")}, S: severities[rec.Level], C: "-", Ctx: "-",
		Msg: rec.Message}
	if line.S == "" {
		line.S = "I"
	}
	rec.Attrs(func(a slog.Attr) bool {
		if line.Attr == nil {
			line.Attr = map[string]any{}
		}
		line.Attr[a.Key] = attribute(a.Value)
		return true
	})
	b, err := json.Marshal(line)
	if err != nil {
		return rec.Message
	}
	return string(b)
}

// attribute returns an attribute as JSON has it: numbers, booleans, and texts for all others.
func attribute(v slog.Value) any {
	switch v.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindBool:
		return v.Any()
	}
	return fmt.Sprint(v.Any())
}
