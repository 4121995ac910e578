package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

type tap struct{ seen map[string][]any }

func (t *tap) DialHook(next redis.DialHook) redis.DialHook                               { return next }
func (t *tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook { return next }
func (t *tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if a := cmd.Args(); a[0] == "evalsha" && a[2] == 7+0 || a[0] == "evalsha" {
			n := a[2].(int)
			if len(a) > 3+n {
				if ph, ok := a[3+n].(string); ok && (ph == "B" || ph == "X") {
					t.seen[ph] = append([]any(nil), a...)
				}
			}
		}
		return next(ctx, cmd)
	}
}

func usec(t *testing.T, c *redis.Client, cmd string) (calls, us float64) {
	s, _ := c.Info(context.Background(), "commandstats").Result()
	for _, l := range strings.Split(s, "\n") {
		if strings.HasPrefix(l, "cmdstat_"+cmd+":") {
			fmt.Sscanf(l, "cmdstat_"+cmd+":calls=%f,usec=%f", &calls, &us)
		}
	}
	return
}

func TestMeasure(t *testing.T) {
	srv := redistest.Start(t)
	ctx := context.Background()
	cl := redis.NewClient(&redis.Options{Network: "unix", Addr: srv.Socket})
	defer cl.Close()
	tp := &tap{map[string][]any{}}
	cl.AddHook(tp)
	st, err := redisstore.New(ctx, cl, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := delta.New(delta.Config{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	type in struct {
		ID string `json:"id"`
		N  int    `json:"n"`
	}
	a := delta.Define("charge", func(ctx *delta.Context, i in) mo.Result[string] { return mo.Ok("x") }).Describe("x").Effect(action.Idempotent).Risk(1).MustBuild()
	ag := delta.NewAgent("desk").Grant(a).MustBuild()
	task, err := e.Start(ctx, delta.Goal{Agent: ag, Text: "x"})
	if err != nil {
		t.Fatal(err)
	}
	c := srv.Client(t)
	do := func(i int) {
		raw, _ := json.Marshal(in{fmt.Sprint("ORD-", i), i})
		o, err := task.Do(ctx, delta.Call{Action: "charge", Input: raw}).Get()
		if err != nil || !o.OK() {
			t.Fatal(err, o.Failure)
		}
	}
	for i := range 200 {
		do(i)
	}
	e.Sync(ctx)
	begin, settle := tp.seen["B"], tp.seen["X"]
	// The scripts alone, replayed: each begin is of another intent.
	one := redis.NewScript("return 1")
	sha := one.Load(ctx, cl).Val()
	run := func(args []any, mod func(a []any, i int), sha any) float64 {
		best := 1e9
		for j := range 40 {
			c.ConfigResetStat(ctx)
			for i := range 50 {
				a := append([]any(nil), args...)
				if sha != nil {
					a[1] = sha
				}
				if mod != nil {
					mod(a, j*50+i)
				}
				if err := cl.Do(ctx, a...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			n, us := usec(t, c, "evalsha")
			best = min(best, us/n)
		}
		return best
	}
	c.ConfigResetStat(ctx)
	for range 3 {
		b1, s1 := run(begin, nil, sha), run(settle, nil, sha)
		c.ConfigResetStat(ctx)
		for i := range 1000 {
			do(1000 + i)
		}
		e.Sync(ctx)
		n, us := usec(t, c, "evalsha")
		t.Logf("return 1: begin %.1f settle %.1f; governed: %.0f scripts, %.1f µs a call in all, ratio %.2f", b1, s1, n, us/1000, us/1000/(b1+s1))
	}
	oid := ""
	for _, v := range begin {
		if s, ok := v.(string); ok && strings.HasPrefix(s, "vintent/") {
			oid = s[8:]
		}
	}
	soid := ""
	for _, v := range settle {
		if s, ok := v.(string); ok && strings.HasPrefix(s, "vout/") {
			soid = s[5:]
		}
	}
	fresh := func(oid string) func(a []any, i int) {
		return func(a []any, i int) {
			for k, v := range a {
				if s, ok := v.(string); ok && k > 3 && len(s) < 60 {
					a[k] = strings.ReplaceAll(s, oid, fmt.Sprintf("%016d", i))
				}
			}
		}
	}
	for range 3 {
		b1, s1 := run(begin, nil, sha), run(settle, nil, sha)
		b := run(begin, fresh(oid), nil)
		for i, v := range settle { // fences and owners of those just begun
			if v == "X" {
				settle[i+2] = begin[11]
			}
		}
		f := fresh(soid)
		x := run(settle, func(a []any, i int) { f(a, i); cl.HDel(ctx, "delta:{desk}:agent", "p") }, nil)
		cl.Del(ctx, "delta:{desk}:records:x")
		t.Logf("begin %.1f of %.1f, settle %.1f of %.1f: %.2f", b, b1, x, s1, (b+x)/(b1+s1))
		for k, v := range begin {
			if s, ok := v.(string); ok && strings.HasPrefix(s, "delta:{desk}:records") {
				_ = k
				ks, _ := cl.HKeys(ctx, s).Result()
				for _, f := range ks {
					if strings.Contains(f, "000000000") {
						cl.HDel(ctx, s, f)
					}
				}
			}
		}
		cl.Del(ctx, "delta:{desk}:pending")
		cl.Del(ctx, "delta:{desk}:queue:leases")
	}
	text, _ := os.ReadFile("../../memory/redisstore/apply.lua")
	for _, w := range []struct {
		name string
		a    []any
		oid  string
	}{{"begin", begin, oid}, {"settle", settle, soid}} {
		for _, mark := range []string{"local phase, fence", "local oR, oA", "local taskRev, taskSeq, over", "local set = {}", "local lease = nR", "local function matches", "local owned, later", "local seq, had", "local leases = {}", "if expires then", "-- One write a hash", "store('HSET', K[1]", "-- A task that is over", "-- A few of", "return reply(1, -1"} {
			cut := strings.Replace(string(text), mark, "do return 1 end\n"+mark, 1)
			sc := redis.NewScript(cut)
			sha := sc.Load(ctx, cl).Val()
			f := fresh(w.oid)

			t.Logf("%-6s up to %-30s %.2f", w.name, mark, run(w.a, func(a []any, i int) { f(a, i); if i%10 == 0 {cl.HDel(ctx, "delta:{desk}:agent", "p") }}, sha))
		}
	}
	for _, snip := range []struct{ name, text string }{
		{"return 1", "return 1"},
		{"time", "local t=redis.call('TIME') return 1"},
		{"time+now", "local t=redis.call('TIME') local us=t[2] local now=t[1]..string.sub('000000',#us+1)..us return 1"},
		{"hmget x3", "local A,K=ARGV,KEYS local c=redis.call local cur=c('HMGET',K[1],unpack(A,11,15)) local r=c('HMGET',K[2],unpack(A,16,17)) r=c('HMGET',K[3],unpack(A,18,20)) return 1"},
		{"hmget x1", "local A,K=ARGV,KEYS local c=redis.call local cur=c('HMGET',K[1],unpack(A,11,15)) return 1"},
		{"hset x1", "local A,K=ARGV,KEYS local c=redis.call c('HSET','delta:{desk}:x','a','b','c','d') return 1"},
		{"hset big", "local A,K=ARGV,KEYS local c=redis.call c('HSET','delta:{desk}:x','a',A[31],'c','d') return 1"},
		{"rpush", "local A,K=ARGV,KEYS local c=redis.call c('RPUSH','delta:{desk}:y',A[31]) return 1"},
		{"zadd", "local A,K=ARGV,KEYS local c=redis.call c('ZADD','delta:{desk}:z','123', 'x') return 1"},
		{"closures", "local function a() end local function b() return a end local function c() return b end local function d() return c end return 1"},
		{"fmt x10", "local f=string.format local x for i=1,10 do x=f('%016.0f', 1234567890123456) end return 1"},
		{"concat big", "local A=ARGV local x='0000000000000001'..A[31] return 1"},
		{"match", "local a,b,c,d,e=string.match('BB-17960540942202220000000000000001123|0|q4tdawv3xnlgdgqu.200','^(.)(.)(.)(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)(%d+)|(%d+)|(%Z*)(.*)$') return 1"},
		{"reply 8", "return {1,2,'1796054094220222','0','0','12','13',''}"},
	} {
		sc := redis.NewScript(snip.text)
		sha := sc.Load(ctx, cl).Val()
		t.Logf("%-12s %.2f", snip.name, run(begin, nil, sha))
	}
	for _, x := range [][]any{begin, settle} {
		for _, v := range x {
			s := fmt.Sprint(v)
			fmt.Printf("%.90q ", s)
		}
		fmt.Println()
	}
}
