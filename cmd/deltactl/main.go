package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

// run is the program apart from ending the process. A first interrupt stops what is under way in order, a second ends
// the program.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := newRoot()
	root.SetIn(&interruptible{ctx: ctx, in: os.Stdin})
	return execute(ctx, root, os.Args[1:], os.Stderr)
}
