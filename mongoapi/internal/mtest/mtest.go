// Package mtest has helpers for the data-driven tests of the MongoDB door: Extended JSON in, Extended JSON out.
package mtest

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Value parses any Extended JSON value.
func Value(t testing.TB, s string) value.Value {
	t.Helper()
	v, err := doc.ValueFromExtJSON([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

// Lines returns the non-empty lines of an input.
func Lines(s string) []string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

// Text prints a value as relaxed Extended JSON, "missing" for Undefined.
func Text(v value.Value) string {
	if !v.IsDefined() {
		return "missing"
	}
	return string(doc.AppendExtJSON(nil, v, true))
}

// Error prints an error with its code.
func Error(err error) string {
	e := merr.From(err)
	return "error " + e.CodeName() + ": " + e.Msg
}

// Env returns an environment frozen at 2026-01-02T03:04:05.678Z whose random number is fixed.
func Env() *expr.Env {
	return &expr.Env{NowMS: 1767323045678, Random: func() float64 { return 0.5 }}
}

// Valid reports whether b is a document that the server would accept.
func Valid(b []byte) bool { return doc.Validate(b, 100) == nil }
