package cli

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// bar shows the progress of a long command on a terminal. On other outputs it shows nothing.
type bar struct {
	out   io.Writer // nil: nothing is shown
	bar   *progressbar.ProgressBar
	name  string
	bytes bool
}

func newBar(out io.Writer) *bar {
	if f, ok := out.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return &bar{out: out}
	}
	return &bar{}
}

// task begins a new task.
func (b *bar) task(name string, bytes bool) {
	b.clear()
	b.bar, b.name, b.bytes = nil, name, bytes
}

// set shows that done of total units are finished.
func (b *bar) set(done, total int64) {
	if b.out == nil || total <= 0 {
		return
	}
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(b.out),
			progressbar.OptionSetDescription(b.name),
			progressbar.OptionShowBytes(b.bytes), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30), progressbar.OptionShowCount())
	}
	_ = b.bar.Set64(done)
}

// clear removes the bar from the terminal.
func (b *bar) clear() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}
