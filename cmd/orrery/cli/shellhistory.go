package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// history are the lines that were entered, also those of earlier shells: in a file of each language that only its owner
// can read. Lines with passwords or keys are remembered until the shell ends, and not written.
type history struct {
	path  string // "" = they aren't kept
	lines []string
}

// historyLines is the number of lines that are kept.
const historyLines = 1000

// secretive finds lines that may have a secret.
var secretive = regexp.MustCompile(`(?i)pwd|passw|secret|auth\s*\(|createUser|updateUser|key\s*=|token`)

// openHistory reads the lines of a language. Without a readable file there are none.
func openHistory(lang string) *history {
	dir, err := os.UserConfigDir()
	if err != nil {
		return &history{}
	}
	h := &history{path: filepath.Join(dir, "orrery", "history-"+lang)}
	raw, err := os.ReadFile(h.path)
	switch {
	case err == nil:
		h.lines = strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' })
		h.lines = h.lines[max(0, len(h.lines)-historyLines):]
	case !errors.Is(err, os.ErrNotExist):
		h.path = ""
	}
	return h
}

// Add implements term.History.
func (h *history) Add(line string) {
	if n := len(h.lines); strings.TrimSpace(line) == "" || n > 0 && h.lines[n-1] == line {
		return
	}
	if len(h.lines) == historyLines {
		h.lines = slices.Delete(h.lines, 0, 1)
	}
	h.lines = append(h.lines, line)
	if h.path == "" || secretive.MatchString(line) {
		return
	}
	if h.write(line) != nil {
		h.path = "" // the lines of this shell are still in memory
	}
}

// write appends a line to the file. A file that has grown to twice its size is written again.
func (h *history) write(line string) error {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	flags, text := os.O_APPEND, line+"\n"
	if info, err := os.Stat(h.path); err == nil && info.Size() > historyLines*200 {
		kept := slices.DeleteFunc(slices.Clone(h.lines), secretive.MatchString)
		flags, text = os.O_TRUNC, strings.Join(kept[max(0, len(kept)-historyLines/2):], "\n")+"\n"
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_CREATE|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Len implements term.History.
func (h *history) Len() int { return len(h.lines) }

// At implements term.History: 0 is the last line.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
