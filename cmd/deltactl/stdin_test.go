package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A first interrupt ends what waits for standard input, with an error and nothing on standard output.
func TestAnInterruptEndsWaitingForInput(t *testing.T) {
	for _, args := range [][]string{
		{"replay", "-"}, {"bench", "gate", "--data", "-"}, {"bench", "risk", "--data", "-"}, {"explain", "-"},
	} {
		silent, w := io.Pipe()
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		waiting := make(chan struct{})
		var out, errs strings.Builder
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(&errs)
		root.SetIn(&interruptible{ctx: ctx, in: readerFunc(func(p []byte) (int, error) {
			close(waiting)
			return silent.Read(p)
		})})
		go func() {
			<-waiting
			cancel(why)
		}()
		require.Equal(t, exitFailed, execute(ctx, root, args, &errs), args)
		require.Contains(t, errs.String(), "interrupted", args)
		require.Empty(t, out.String(), args)
		require.NoError(t, w.Close()) // lets go of what waits
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestInterruptibleReadsWhatIsThere(t *testing.T) {
	text := strings.Repeat("some input, ", 1000)
	got, err := io.ReadAll(&interruptible{ctx: t.Context(), in: iotest.HalfReader(strings.NewReader(text))})
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	_, err = io.ReadAll(&interruptible{ctx: t.Context(), in: iotest.ErrReader(io.ErrUnexpectedEOF)})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = io.ReadAll(&interruptible{ctx: ended, in: strings.NewReader(text)})
	require.ErrorIs(t, err, context.Canceled)
}
