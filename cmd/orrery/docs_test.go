package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// inWords are the flags whose default the documentation tells in words: it is made when the server starts.
var inWords = map[string]string{"data": "./data", "key": "the emulator's", "min-free": "256MiB", "memory-mb": "cache and 112"}

var documentedFlag = regexp.MustCompile("`--([a-z-]+)[^`]*`")

// The table of flags in docs/operations.md has every flag of serve, no other, and their defaults.
func TestDocumentedFlags(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n| flag | default |")
	table, _, _ := strings.Cut(rest, "\n\n")
	documented := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range documentedFlag.FindAllStringSubmatch(cells[1], -1) {
			documented[m[1]] = strings.Trim(cells[2], " `")
		}
	}
	var c cli
	p, err := kong.New(&c, kong.Vars{"key": server.WellKnownKey, "version": ""})
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := p.Parse([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ctx.Selected().Flags {
		want := f.Default
		if f.IsBool() {
			want = ""
		}
		if words, ok := inWords[f.Name]; ok {
			want = words
		}
		got, ok := documented[f.Name]
		delete(documented, f.Name)
		if !ok || got != want {
			t.Errorf("--%s: documented %v with default %q, want %q", f.Name, ok, got, want)
		}
	}
	for name := range documented {
		t.Errorf("--%s is documented and no flag of serve", name)
	}
}
