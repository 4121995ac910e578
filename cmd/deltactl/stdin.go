package main

import (
	"context"
	"io"
)

// interruptible is a reader that ends when ctx does, even where the one it reads from waits for input: a terminal, or a
// pipe whose other end is silent. What waits is left behind for the end of the program. It is not safe for concurrent use.
type interruptible struct {
	ctx  context.Context
	in   io.Reader
	asks chan int
	got  chan read
}

type read struct {
	data []byte
	err  error
}

// Read implements [io.Reader]. Once ctx ended, its error is why.
func (r *interruptible) Read(p []byte) (int, error) {
	if r.asks == nil {
		r.asks, r.got = make(chan int), make(chan read, 1)
		go func() {
			for n := range r.asks {
				buf := make([]byte, n)
				n, err := r.in.Read(buf)
				r.got <- read{buf[:n], err}
			}
		}()
	}
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	select {
	case r.asks <- len(p):
	case <-r.ctx.Done():
		return 0, context.Cause(r.ctx)
	}
	select {
	case x := <-r.got:
		return copy(p, x.data), x.err
	case <-r.ctx.Done():
		return 0, context.Cause(r.ctx)
	}
}
