package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The screen is a function of what it was told: tables once something was seen, what failed above what was seen before, no
// more lines than there are, and an end when the person wants it.
func TestWatching(t *testing.T) {
	w := &watching{ctx: t.Context(), every: time.Hour, look: func(context.Context) (standings, error) { return standings{}, nil }}
	assert.Contains(t, w.View().Content, "looking")
	s := standings{
		At: time.Unix(1e9, 0).UTC(), Agents: []agentRow{{Agent: "desk", Trust: 0.5, Riskiest: "refund", Level: 4}},
		Tasks: []taskRow{{ID: "desk~t1", Status: "running"}}, budgets: []string{"3 of 10 calls"},
		Approvals: []approvalRow{{ID: "desk~t1~x", Action: "refund", Risk: 4}},
	}
	_, cmd := w.Update(seenMsg{standings: s})
	require.NotNil(t, cmd, "it looks again")
	for _, want := range []string{"2001-09-09", "desk", "refund", "3 of 10 calls", "desk~t1~x"} {
		assert.Contains(t, w.View().Content, want)
	}
	_, _ = w.Update(seenMsg{err: errors.New("the store is\x1b[2J gone")})
	view := w.View()
	assert.True(t, strings.HasPrefix(view.Content, "the store is"), view.Content)
	assert.NotContains(t, view.Content, "\x1b[2J", "nothing from outside draws")
	assert.Contains(t, view.Content, "desk~t1~x", "what was seen stays")
	_, _ = w.Update(tea.WindowSizeMsg{Width: 80, Height: 4})
	assert.Equal(t, 3, strings.Count(w.View().Content, "\n"))
	_, _ = w.Update(tea.WindowSizeMsg{Width: 20, Height: 40})
	assert.Contains(t, w.View().Content, "\ndesk~t1      -  run…\n", "what does not fit ends in an ellipsis")
	_, _ = w.Update(tea.WindowSizeMsg{Width: 80, Height: 4})
	_, cmd = w.Update(lookMsg{})
	assert.IsType(t, seenMsg{}, cmd())
	for _, key := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: tea.KeyEscape}, {Code: 'c', Mod: tea.ModCtrl}} {
		_, cmd := w.Update(key)
		require.NotNil(t, cmd, key.String())
		assert.Equal(t, tea.Quit(), cmd())
	}
	_, cmd = w.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
	assert.Nil(t, cmd)
}

// A long name does not push the others off the screen, and what there is no room for is counted.
func TestWatchingCuts(t *testing.T) {
	s := standings{At: time.Unix(1e9, 0), Agents: []agentRow{{Agent: strings.Repeat("a", 100), Trust: 0.5}}, More: beyond{Agents: 4000, Tasks: 1},
		Tasks: []taskRow{{ID: strings.Repeat("b", 100), Needs: needsApproval, Status: "running"}}, budgets: []string{strings.Repeat("c", 100)}}
	var out strings.Builder
	require.NoError(t, s.print(&out, true))
	for _, long := range []string{strings.Repeat("a", widestID-1) + "…  ", strings.Repeat("b", widestID-1) + "…  approval", strings.Repeat("c", widestText-1) + "…\n"} {
		assert.Contains(t, out.String(), long)
	}
	assert.Contains(t, out.String(), "… 4000 more agents\n")
	assert.Contains(t, out.String(), "… 1 more task\n")
	out.Reset()
	require.NoError(t, s.print(&out, false))
	assert.Contains(t, out.String(), strings.Repeat("c", 100), "a pipe gets all of it")
}

// It ends with the person, and gives the terminal back.
func TestWatchingEnds(t *testing.T) {
	in, keys := io.Pipe()
	w := &watching{ctx: t.Context(), every: time.Hour, look: func(context.Context) (standings, error) {
		go func() { _, _ = keys.Write([]byte("q")) }()
		return standings{At: time.Now()}, nil
	}}
	var out strings.Builder
	_, err := tea.NewProgram(w, tea.WithInput(in), tea.WithOutput(&out), tea.WithContext(t.Context()), tea.WithWindowSize(80, 20)).Run()
	require.NoError(t, err)
	require.NoError(t, keys.Close())
	assert.Contains(t, out.String(), "\x1b[?1049l", "the screen as it was before")
}
