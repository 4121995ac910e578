package table

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Bar shows how far long work has come. The zero value and one made for anything but a terminal show nothing.
type Bar struct {
	bar *progressbar.ProgressBar
}

// Progress returns a bar for total units of work on w, usually standard error, so that a table on standard output stays
// whole. It is drawn at most some fifteen times a second and erased when it is done. A total that is not positive is
// unknown: the bar then only counts.
func Progress(w io.Writer, total int64) *Bar {
	return newBar(w, total, IsTerminal(w))
}

func newBar(w io.Writer, total int64, terminal bool) *Bar {
	if !terminal {
		return &Bar{}
	}
	if total <= 0 {
		total = -1
	}
	return &Bar{bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionThrottle(65*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // otherwise an unknown total starts a goroutine
		progressbar.OptionClearOnFinish(),
	)}
}

// Add says that n more units are done. A bar that cannot be drawn is no reason to stop working: errors are dropped.
func (b *Bar) Add(n int64) {
	if b.bar != nil {
		_ = b.bar.Add64(n)
	}
}

// Describe puts a few words before the bar.
func (b *Bar) Describe(text string) {
	if b.bar != nil {
		b.bar.Describe(clean(text))
	}
}

// Done erases the bar. It may be called more than once.
func (b *Bar) Done() {
	if b.bar != nil {
		_ = b.bar.Finish()
		b.bar = nil
	}
}
