// Package progress shows how far a long command has come.
package progress

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// Bar shows the progress of a long command on a terminal: what is done of how much, the rate, and the time left. On
// other outputs it shows nothing.
type Bar struct {
	out   io.Writer // nil: nothing is shown
	bar   *progressbar.ProgressBar
	name  string
	bytes bool
}

// New returns a bar on an output.
func New(out io.Writer) *Bar {
	if f, ok := out.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return &Bar{out: out}
	}
	return &Bar{}
}

// Shown reports whether somebody sees the bar.
func (b *Bar) Shown() bool { return b.out != nil }

// Task begins a new task, which counts bytes or other things.
func (b *Bar) Task(name string, bytes bool) {
	b.Clear()
	b.bar, b.name, b.bytes = nil, name, bytes
}

// Set shows that done of total units are finished. Without a total only done and the rate are known: total = 0 is
// nothing to show, -1 an unknown total.
func (b *Bar) Set(done, total int64) {
	if b.out == nil || total == 0 {
		return
	}
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(b.out),
			progressbar.OptionSetDescription(b.name),
			progressbar.OptionShowBytes(b.bytes), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30), progressbar.OptionShowCount(), progressbar.OptionShowIts())
	}
	_ = b.bar.Set64(done)
}

// Clear removes the bar from the terminal.
func (b *Bar) Clear() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}
