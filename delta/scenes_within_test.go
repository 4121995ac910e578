package delta_test

import (
	"testing/synctest"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// toolUnknown has the function of a call that goes on make another call, of an action that is none of its tools.
func toolUnknown(w *world, p path) action.Outcome {
	start, inner, end := make(chan struct{}), make(chan action.Outcome, 1), make(chan struct{})
	w.does(func(ctx *delta.Context, _ In) mo.Result[Out] {
		<-start
		o, err := ctx.Tool("look").Call(In{ID: "a"}).Get()
		if err == nil {
			inner <- o
		}
		<-end
		return mo.Ok(Out{"ok"})
	})
	outer := background(func() action.Outcome { return w.make(p, call("act", "a")) })
	w.Cleanup(func() { close(end); outer() })
	synctest.Wait()
	w.begin()
	close(start)
	return <-inner
}

// mayTell gives the task to an agent that may send messages, without a channel to send them over.
func mayTell(w *world, g *delta.Goal) {
	var err error
	w.agent, err = delta.NewAgent("clerk").Grant(delta.Communicate().MustBuild()).Build()
	require.NoError(w, err)
	g.Agent = w.agent
}
