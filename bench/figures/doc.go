// Command figures measures what the engine promises about its own cost, and prints each figure beside its bar.
//
//	go run ./bench/figures            # the table
//	go run ./bench/figures -check     # and exit with 1 where a bar is missed
//	go run ./bench/figures -only offer -samples 41
//
// Every figure is a ratio of two things measured in this run, in turns, through the public API: times do not carry from one
// machine to another, ratios do. A figure is the median of its samples over the median of those beside it; spread is what
// lies between the quarters of the ratios, pair by pair. Allocations are those of the whole process, what goes on beside a
// call included. On a machine that does something else at the same time, the ratios of many goroutines say little.
//
// The same figures are benchmarks: go test -bench . ./bench/figures.
package main
