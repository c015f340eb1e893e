package main

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// bar shows how far a long command is, on a terminal; elsewhere it shows nothing.
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

// task begins something new.
func (b *bar) task(name string, bytes bool) {
	b.clear()
	b.bar, b.name, b.bytes = nil, name, bytes
}

// set shows that done of total is done.
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

// clear takes the bar off the terminal.
func (b *bar) clear() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}
