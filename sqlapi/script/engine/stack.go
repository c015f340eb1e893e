package engine

import (
	"fmt"
	"strings"
)

// modelPrefix begins the names of the object model's own files, whose frames no trace shows. No script's id has it.
const modelPrefix = "/model/"

// source is what a stack trace must know about a program.
type source struct {
	file  string // <id>.js
	shift int    // columns that were put before the first line
	lines int    // of the program's text
}

// trace rewrites a stack trace of the engine, "Error: text\n\tat f (a.js:1:2(3))\n..", in the service's form. It leaves
// out the frames of the object model and of native functions.
func (s *source) trace(stack string) string {
	first := strings.Index(stack, "\n\tat ")
	if first < 0 {
		return strings.TrimSuffix(stack, "\n")
	}
	var b strings.Builder
	b.WriteString(stack[:first])
	for line := range strings.Lines(stack[first+1:]) {
		frame, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\tat ")
		if !ok {
			continue
		}
		if name, line, column, ok := s.frame(frame); ok {
			fmt.Fprintf(&b, "\n   at %s (%s:%d:%d)", name, s.file, line, column)
		}
	}
	return b.String()
}

// mainFrames are the frames below a program's entry, as the service's wrapper has them.
func (s *source) mainFrames() string {
	return fmt.Sprintf("\n   at __docDbMain (%s:%d:5)\n   at Global code (%s:1:2)", s.file, s.lines+1, s.file)
}

// frame reads a frame "f (a.js:1:2(3))" or "a.js:1:2(3)". ok is false for frames that aren't the program's.
func (s *source) frame(text string) (name string, line, column int, ok bool) {
	name = "Anonymous function"
	place := text
	if i := strings.LastIndex(text, " ("); i >= 0 {
		name, place = text[:i], strings.TrimSuffix(text[i+2:], ")")
	}
	place, found := strings.CutPrefix(place, s.file+":")
	if !found {
		return "", 0, 0, false
	}
	if _, err := fmt.Sscanf(place, "%d:%d", &line, &column); err != nil {
		return "", 0, 0, false
	}
	if line == 1 {
		column = max(column-s.shift, 1)
	}
	return name, line, column, true
}
