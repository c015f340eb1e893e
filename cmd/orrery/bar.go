package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-isatty"

	"github.com/orrerydb/orrery/core/clock"
)

// bar shows the progress of a long command on a terminal. On other outputs it shows nothing.
//
// Example, of the task items:
//
//	items  25% ███████                        250/1000, 1m30s left
type bar struct {
	out   io.Writer // nil: nothing is shown
	clock *clock.Clock

	name  string
	bytes bool

	width        int           // of the shown line, in characters
	begun, shown time.Duration // by clock: the first and the last line of the task
}

// A line is drawn at most once in barPause.
const barPause = 100 * time.Millisecond

func newBar(out io.Writer) *bar {
	b := &bar{clock: clock.New()}
	if f, ok := out.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		b.out = out
	}
	return b
}

// task begins a new task.
func (b *bar) task(name string, bytes bool) {
	b.clear()
	b.name, b.bytes = name, bytes
}

// set shows that done of total units are finished.
func (b *bar) set(done, total int64) {
	if b.out == nil || total <= 0 {
		return
	}
	now := b.clock.Elapsed()
	switch {
	case b.width == 0:
		b.begun = now
	case now-b.shown < barPause:
		return
	}
	b.shown = now
	line := fmt.Sprintf("%s %3.0f%% %s %s", b.name, 100*float64(done)/float64(total), filled(done, total, 30),
		b.count(done, total))
	if took := now - b.begun; done > 0 && took >= time.Second {
		left := time.Duration(float64(took) * float64(total-done) / float64(done))
		line += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	b.line(line)
}

func (b *bar) count(done, total int64) string {
	if b.bytes {
		return fmt.Sprintf("%v/%v", size(done), size(total))
	}
	return fmt.Sprintf("%d/%d", done, total)
}

// line replaces the shown line. Spaces cover what is left of a longer one: old consoles know no other way.
func (b *bar) line(text string) {
	n := utf8.RuneCountInString(text)
	fmt.Fprintf(b.out, "\r%s%s", text, strings.Repeat(" ", max(0, b.width-n)))
	b.width = n
}

// clear removes the bar from the terminal.
func (b *bar) clear() {
	if b.width > 0 {
		b.line("")
		fmt.Fprint(b.out, "\r")
	}
}

// filled returns a bar of width characters, of which part/whole are filled.
func filled(part, whole int64, width int) string {
	n := int(float64(width) * float64(min(part, whole)) / float64(max(whole, 1)))
	return strings.Repeat("█", n) + strings.Repeat(" ", width-n)
}
