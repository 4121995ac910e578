// Command redis measures what the store on Redis promises of its cost, beside the raw server in the same run, and prints each
// figure beside its bar.
//
//	go run ./bench/redis            # the table; needs redis-server
//	go run ./bench/redis -check     # and exit with 1 where a bar is missed
//
// The server is a throw-away one without persistence, on the machine that runs the engine too: ratios carry over to others,
// times do not. Both sides of a ratio are measured in turns, in small batches. Times are medians; server time is what the
// server itself counts for its commands, and the least of the batches.
package main
