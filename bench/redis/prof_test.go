package main

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestProf(t *testing.T) {
	ctx := context.Background()
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	d, err := open(ctx, s, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.client.ConfigResetStat(ctx)
	from := time.Now()
	tp := &tape{}
	d.client.AddHook(tp)
	if err := d.calls(ctx, 400); err != nil {
		t.Fatal(err)
	}
	el := time.Since(from)
	d.engine.Sync(ctx)
	fmt.Println(el/400, s.client.Info(ctx, "commandstats").Val())
	kinds := map[string]int{}
	size := map[string]int{}
	for _, a := range tp.sent {
		n := 0
		for _, x := range a {
			n += len(fmt.Sprint(x))
		}
		k := fmt.Sprint(a[0])
		if k == "evalsha" {
			nk := 0
			fmt.Sscan(fmt.Sprint(a[2]), &nk)
			k += fmt.Sprint(" ", nk, " ", a[3+nk])
		}
		kinds[k]++
		size[k] += n
	}
	for k, n := range kinds {
		fmt.Println(k, n, size[k]/n)
	}
	r, _ := d.record(ctx, 0)
	fmt.Printf("%q\n\n%q\n", r.begin, r.settle)
	_ = d.close()
}
