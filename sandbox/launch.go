package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// launched is a program that goes on running.
type launched struct {
	p    *process
	end  context.CancelCauseFunc
	gone chan struct{}
	err  error // how it ended, once gone

	once   sync.Once
	closed error
}

// errClosed ends what is closed.
var errClosed = errors.New("the program was told to end")

func (s *Sandbox) launch(ctx context.Context, sp spec) (io.ReadWriteCloser, error) {
	ctx, end := context.WithCancelCause(ctx)
	p, err := s.start(ctx, sp)
	if err != nil {
		end(nil)
		return nil, err
	}
	l := &launched{p: p, end: end, gone: make(chan struct{})}
	stdin, stdout := p.stdin, p.stdout
	p.stdin, p.stdout = nil, nil // they are the caller's, who may still read what was written last
	l.p = &process{stdin: stdin, stdout: stdout}
	go func() {
		defer close(l.gone)
		l.err = p.wait(ctx)
		end(nil)
	}()
	return l, nil
}

// Read implements io.Reader: the program's standard output.
func (l *launched) Read(b []byte) (int, error) { return l.p.stdout.Read(b) }

// Write implements io.Writer: the program's standard input.
func (l *launched) Write(b []byte) (int, error) { return l.p.stdin.Write(b) }

// Close implements io.Closer.
func (l *launched) Close() error {
	l.once.Do(func() {
		_ = l.p.stdin.Close()
		patience := time.NewTimer(lastWords)
		defer patience.Stop()
		select {
		case <-l.gone:
		case <-patience.C:
			l.end(errClosed)
			<-l.gone
		}
		_ = l.p.stdout.Close()
		var exit *ExitError
		if err := l.err; err != nil && !errors.Is(err, errClosed) && !errors.As(err, &exit) {
			l.closed = fmt.Errorf("sandbox: %w", err)
		}
	})
	return l.closed
}
