package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Few calls at a time go each over a connection of their own, which is the quickest. Where more are under way they share
// trips: what is asked while others are on their way goes together next. Nobody waits for more to come.
const (
	aloneUpTo = 4  // calls under way that do not share
	trips     = 3  // under way at a time: one is written while another is served
	perTrip   = 24 // the most that share one
)

// batcher runs scripts, several in a trip where several are wanted. It has a goroutine for each trip under way, and none
// where nothing is to be done.
type batcher struct {
	client redis.UniversalClient

	mu      sync.Mutex
	aloft   int // calls under way
	running int // goroutines
	queue   []*job
}

// job is one script that somebody waits for.
type job struct {
	cmd  *redis.Cmd
	on   turns
	done chan struct{} // closed when cmd has its answer
}

// turns are what is done for a call that shares a trip when it goes, and when its answer has come, before others go; nil for
// nothing. Its caller may not have come to run in between, or have given up.
type turns struct {
	going func()
	come  func(answer []any)
}

// evaluation is a command that runs a script.
func evaluation(ctx context.Context, args []any) *redis.Cmd {
	c := redis.NewCmd(ctx, args...)
	c.SetFirstKeyPos(3)
	return c
}

// run runs a script by its hash, and sends its text where the server has forgotten it. A caller whose context ends does not
// wait for the answer: whether the script ran is not known then.
func (b *batcher) run(ctx context.Context, which script, args []any, on turns) ([]any, error) {
	cmd := evaluation(ctx, args)
	j := b.take(cmd, on)
	defer b.leave()
	if j == nil {
		_ = b.client.Process(ctx, cmd)
	} else {
		select {
		case <-j.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if v, err := cmd.Slice(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return v, err
	}
	args[0], args[1] = "eval", which.text
	cmd = evaluation(ctx, args)
	_ = b.client.Process(ctx, cmd)
	return cmd.Slice()
}

// take counts a call in, and puts it into the queue where it is to share a trip.
func (b *batcher) take(cmd *redis.Cmd, on turns) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.aloft++; b.aloft <= aloneUpTo {
		return nil
	}
	j := &job{cmd: cmd, on: on, done: make(chan struct{})}
	b.queue = append(b.queue, j)
	if b.running < trips {
		b.running++
		go b.work()
	}
	return j
}

func (b *batcher) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aloft--
}

// work makes trips until the queue is empty.
func (b *batcher) work() {
	for {
		b.mu.Lock()
		n := min(len(b.queue), perTrip)
		if n == 0 {
			b.running--
			b.mu.Unlock()
			return
		}
		jobs := b.queue[:n:n]
		if b.queue = b.queue[n:]; len(b.queue) == 0 {
			b.queue = nil
		}
		b.mu.Unlock()
		b.trip(jobs)
	}
}

// trip sends what the jobs ask for and lets their callers go. It ends within the client's timeouts.
func (b *batcher) trip(jobs []*job) {
	ctx := context.Background()
	p := b.client.Pipeline()
	for _, j := range jobs {
		if j.on.going != nil {
			j.on.going()
		}
		_ = p.Process(ctx, j.cmd)
	}
	_, _ = p.Exec(ctx) // each job has its own error
	for _, j := range jobs {
		if v, err := j.cmd.Slice(); err == nil && j.on.come != nil {
			j.on.come(v)
		}
		close(j.done)
	}
}
