package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bare is a script that does nothing.
const bare = "return 1"

func quantile(xs []float64, q float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return xs[int(q*float64(len(xs)-1)+0.5)]
}

// oneClient is a governed call beside two bare round trips of the same client.
func oneClient(ctx context.Context, s *server, samples int) ([]row, error) {
	d, err := open(ctx, s, 1, 1, 1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.close() }()
	sha, err := s.client.ScriptLoad(ctx, bare).Result()
	if err != nil {
		return nil, err
	}
	const batch = 100
	var ours, beside, ratios []float64
	for range samples + 1 {
		from := time.Now()
		if err := d.calls(ctx, batch); err != nil {
			return nil, err
		}
		a := float64(time.Since(from).Microseconds()) / batch
		if err := d.engine.Sync(ctx); err != nil {
			return nil, err
		}
		from = time.Now()
		for range 2 * batch {
			if err := d.client.EvalSha(ctx, sha, []string{"delta:{clerk0}:agent"}).Err(); err != nil {
				return nil, err
			}
		}
		b := float64(time.Since(from).Microseconds()) / batch
		ours, beside, ratios = append(ours, a), append(beside, b), append(ratios, a/b)
	}
	return []row{{"governed call, one client", "two bare round trips", 1.75, false, "×", quantile(ratios[1:], 0.5),
		fmt.Sprintf("%.0f µs, %.0f beside; least %.3g×", quantile(ours, 0.5), quantile(beside, 0.5), quantile(ours, 0)/quantile(beside, 0))}}, nil
}

const connections = 64

// atOnce is the rate of 64 tasks, beside that of 64 raw connections that send the same two scripts ready made.
func atOnce(ctx context.Context, s *server, samples int) (rows []row, err error) {
	for _, c := range []struct {
		name          string
		agents, tasks int
	}{{"64 tasks of one agent", 1, connections}, {"64 agents", connections, 1}} {
		r, err := rates(ctx, s, c.name, c.agents, c.tasks, samples)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func rates(ctx context.Context, s *server, name string, agents, tasks, samples int) (row, error) {
	if err := s.client.FlushAll(ctx).Err(); err != nil {
		return row{}, err
	}
	d, err := open(ctx, s, agents, tasks, 1)
	if err != nil {
		return row{}, err
	}
	defer func() { _ = d.close() }()
	b, err := openBare(ctx, s, d)
	if err != nil {
		return row{}, err
	}
	defer b.close()
	const batch = 40 * connections
	var ours, beside, ratios []float64
	for range samples + 1 {
		if err := b.make(batch); err != nil {
			return row{}, err
		}
		from := time.Now()
		if err := b.run(); err != nil {
			return row{}, err
		}
		raw := batch / time.Since(from).Seconds()
		if err := b.clear(ctx, s); err != nil {
			return row{}, err
		}
		from = time.Now()
		if err := errors.Join(d.calls(ctx, batch), d.engine.Sync(ctx)); err != nil {
			return row{}, err
		}
		our := batch / time.Since(from).Seconds()
		ours, beside, ratios = append(ours, our), append(beside, raw), append(ratios, 100*our/raw)
	}
	return row{name, "the same scripts at 64 connections", 70, true, "%", quantile(ratios[1:], 0.5),
		fmt.Sprintf("%.0f calls/s, %.0f beside", quantile(ours, 0.5), quantile(beside, 0.5))}, nil
}

// bareCalls sends the scripts of recorded calls from raw connections, each time of another intent, to a copy of the state
// under another tenant's prefix.
type bareCalls struct {
	calls []recorded
	conns []*raw
	ready [][][]byte
	n     int
	keys  []string
}

func openBare(ctx context.Context, s *server, d *desk) (*bareCalls, error) {
	b := &bareCalls{}
	for i := range connections {
		r, err := d.record(ctx, i%len(d.tasks))
		if err != nil {
			return nil, err
		}
		b.calls = append(b.calls, r)
		c, err := dial(s.addr)
		if err != nil {
			return nil, err
		}
		b.conns = append(b.conns, c)
	}
	if err := d.engine.Sync(ctx); err != nil {
		return nil, err
	}
	keys, err := s.client.Keys(ctx, "delta:*").Result()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		copied := "bench" + strings.TrimPrefix(k, "delta")
		if err := s.client.Copy(ctx, k, copied, 0, true).Err(); err != nil {
			return nil, err
		}
		b.keys = append(b.keys, copied)
	}
	return b, nil
}

func (b *bareCalls) close() {
	for _, c := range b.conns {
		_ = c.Close()
	}
}

// make writes the next n calls.
func (b *bareCalls) make(n int) error {
	b.ready = make([][][]byte, connections)
	for i := range n {
		r := b.calls[i%connections]
		b.n++
		id := fmt.Sprintf("%0*d", len(r.intent), b.n)
		for _, args := range [][]string{r.begin, r.settle} {
			cmd := make([]string, len(args))
			for k, a := range args {
				cmd[k] = strings.ReplaceAll(a, r.intent, id)
			}
			keys, err := strconv.Atoi(cmd[2])
			if err != nil {
				return err
			}
			for k := 3; k < 3+keys; k++ {
				cmd[k] = strings.Replace(cmd[k], "delta", "bench", 1)
			}
			copy(cmd[3+keys+knownAt:], unknown) // else each would look for a record ever farther from the newest, which no engine does
			b.ready[i%connections] = append(b.ready[i%connections], wire(cmd))
		}
		if i%foldedAfter == 0 { // as an engine folds on the way
			b.ready[i%connections] = append(b.ready[i%connections], wire([]string{"del", pendingOf(strings.Replace(r.begin[5], "delta", "bench", 1))}))
		}
	}
	return nil
}

// foldedAfter is after how many outcomes of one task or another what waits to be folded is dropped.
const foldedAfter = 12

// pendingOf is the key of the outcomes that wait to be folded, beside that of the agent.
func pendingOf(agent string) string { return strings.TrimSuffix(agent, "agent") + "pending" }

func (b *bareCalls) run() error {
	return share(connections, connections, func(i int) error {
		for _, cmd := range b.ready[i] {
			if err := b.conns[i].do(cmd); err != nil {
				return err
			}
		}
		return nil
	})
}

// clear drops the outcomes that wait to be folded, which an engine does on the way.
func (b *bareCalls) clear(ctx context.Context, s *server) error {
	for _, k := range b.keys {
		if strings.HasSuffix(k, "}:agent") {
			if err := s.client.Del(ctx, pendingOf(k)).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// each measures so many begins, and then their settles, from one connection.
func (b *bareCalls) each(ctx context.Context, s *server, n int, cost func(func() error) (float64, error), own *[2][]float64) error {
	if err := b.make(n); err != nil {
		return err
	}
	for half := range own {
		us, err := cost(func() error {
			for i := range b.ready {
				for k, n := 0, 0; k < len(b.ready[i]); k++ {
					if strings.HasPrefix(string(b.ready[i][k]), "*2\r\n") {
						continue
					}
					if n++; n%2 == half {
						continue
					}
					if err := b.conns[0].do(b.ready[i][k]); err != nil {
						return err
					}
					if half == 1 {
						if err := b.clear(ctx, s); err != nil {
							return err
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		own[half] = append(own[half], us)
	}
	return nil
}

// apart is a command like evalsha, whose time the server counts apart.
const apart = "evalsha_ro"

// serverTime is what the server works for a governed call, all that goes with it, beside scripts that do nothing with the
// same arguments. They are sent between the calls, so that they too find the processor as an engine has left it; a client that
// sends nothing else has half of their time.
func serverTime(ctx context.Context, s *server, samples int) ([]row, error) {
	d, err := open(ctx, s, 1, 1, 1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.close() }()
	r, err := d.record(ctx, 0)
	if err != nil {
		return nil, err
	}
	sha, err := s.client.ScriptLoad(ctx, bare).Result()
	if err != nil {
		return nil, err
	}
	conn, err := dial(s.addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	begin, settle := slices.Clone(r.begin), slices.Clone(r.settle)
	begin[1], settle[1] = sha, sha
	nothing := [][]byte{wire(begin), wire(settle)}
	begin[0], settle[0] = apart, apart
	between := [][]byte{wire(begin), wire(settle)}
	const batch = 50
	spend := func(command string, do func() error) (float64, error) {
		before, err := s.spent(ctx, command)
		if err != nil {
			return 0, err
		}
		if err := do(); err != nil {
			return 0, err
		}
		after, err := s.spent(ctx, command)
		return (after - before) / batch, err
	}
	cost := func(do func() error) (float64, error) { return spend("evalsha", do) }
	var ours, beside, alone []float64
	var own [2][]float64
	replay, err := openBare(ctx, s, d)
	if err != nil {
		return nil, err
	}
	defer replay.close()
	for range 3 * samples {
		if err := replay.each(ctx, s, batch, cost, &own); err != nil {
			return nil, err
		}
		var a float64
		b, err := spend(apart, func() (err error) {
			a, err = cost(func() error {
				for range batch {
					if err := errors.Join(d.calls(ctx, 1), conn.do(between[0]), conn.do(between[1])); err != nil {
						return err
					}
				}
				return d.engine.Sync(ctx)
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		c, err := cost(func() error {
			for i := range 2 * batch {
				if err := conn.do(nothing[i%2]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		ours, beside, alone = append(ours, a), append(beside, b), append(alone, c)
	}
	return []row{{"server time of a governed call", "two scripts that do nothing, between the calls", 5, false, "×", quantile(ours, 0.5) / quantile(beside, 0.5),
		fmt.Sprintf("%.1f µs, %.1f beside, %.1f one after the other; begin %.1f, settle %.1f so, the rest is housekeeping and what others leave in the caches; least %.3g×",
			quantile(ours, 0.5), quantile(beside, 0.5), quantile(alone, 0.5), quantile(own[0], 0.5), quantile(own[1], 0.5), quantile(ours, 0)/quantile(beside, 0))}}, nil
}

// footprint is what an idle agent and a record take.
func footprint(ctx context.Context, s *server, _ int) ([]row, error) {
	d, err := open(ctx, s, 1, 1, 10)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.close() }()
	for i := range 10 {
		for range 5 {
			if err := call(ctx, d.tasks[0], fmt.Sprint("charge", i)); err != nil {
				return nil, err
			}
		}
	}
	if err := errors.Join(d.tasks[0].Done(ctx, "served"), d.engine.Sync(ctx)); err != nil {
		return nil, err
	}
	keys, err := s.client.Keys(ctx, "delta:{clerk0}:*").Result()
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	hot, said := 0.0, []string{}
	for _, k := range keys {
		name := strings.TrimPrefix(k, "delta:{clerk0}:")
		if strings.Contains(name, ":t0") || name == "ledger" || name == "links" { // the task's own, which goes with it; and what nobody reads to decide
			continue
		}
		n, err := s.client.MemoryUsage(ctx, k, 0).Result()
		if err != nil {
			return nil, err
		}
		hot += float64(n)
		said = append(said, fmt.Sprint(name, " ", n))
	}
	record, err := perRecord(ctx, s, d)
	return []row{{"hot state of an idle agent, ten actions", "", 8, false, "KiB", hot / 1024, strings.Join(said, ", ")}, record}, err
}

// perRecord is what the ledger of a long task takes, its links included, beside what its records say.
func perRecord(ctx context.Context, s *server, d *desk) (row, error) {
	t, err := d.engine.Start(ctx, longTask(d))
	if err != nil {
		return row{}, err
	}
	for range 500 {
		if err := call(ctx, t, "charge0"); err != nil {
			return row{}, err
		}
	}
	if err := d.engine.Sync(ctx); err != nil {
		return row{}, err
	}
	ledger, err := s.client.MemoryUsage(ctx, "delta:{clerk0}:ledger:long", 0).Result()
	if err != nil {
		return row{}, err
	}
	links, err := s.client.MemoryUsage(ctx, "delta:{clerk0}:links:long", 0).Result()
	if err != nil {
		return row{}, err
	}
	records, _, err := t.Ledger(ctx)
	if err != nil {
		return row{}, err
	}
	payload := 0
	for i := range records {
		payload += len(records[i].Val) + len(records[i].Link) + 8 // and its time
	}
	return row{"one ledger record, of 1,000", "its event, time and link", 1.5, false, "×", float64(ledger+links) / float64(payload),
		fmt.Sprintf("%d records, %d bytes each", len(records), (ledger+links)/int64(len(records)))}, nil
}
