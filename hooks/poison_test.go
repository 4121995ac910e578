package hooks_test

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/hooks"
)

type poison struct{ how string }

func (p *poison) Error() string { return p.how } // a typed nil panics
func (p *poison) Is(error) bool { panic("Is") }

type exits struct{}

func (exits) String() string { runtime.Goexit(); return "" }

// What a hook returns or panics with is user code too: reading it harms nobody, then or later.
func TestWhatAHookSaysIsContained(t *testing.T) {
	for name, hook := range map[string]hooks.Func{
		"typed nil":      func(context.Context, action.View) error { return (*poison)(nil) },
		"Is panics":      func(context.Context, action.View) error { return &poison{"x"} },
		"huge":           func(context.Context, action.View) error { return &poison{strings.Repeat("x", 1<<20)} },
		"panics with it": func(context.Context, action.View) error { panic((*poison)(nil)) },
		"ends its goroutine while the panic is read": func(context.Context, action.View) error { panic(exits{}) },
	} {
		t.Run(name, func(t *testing.T) {
			var r hooks.Runner
			err := hooks.Join(hooks.Hooks{Before: hook}).Before(t.Context(), &r, action.View{})
			require.Error(t, err)
			assert.NotEmpty(t, err.Error())
			assert.Less(t, len(err.Error()), 2*action.MaxText)
			assert.NotErrorIs(t, err, io.EOF)
			require.NoError(t, r.Wait(t.Context()))
		})
	}
}
