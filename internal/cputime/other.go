//go:build !unix

package cputime

import "time"

var started = time.Now()

// Now is the time since the process started, where the processor's cannot be asked for.
func Now() time.Duration { return time.Since(started) }
