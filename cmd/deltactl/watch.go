package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const watchHelp = `Watch shows, on a terminal and until q or ctrl-c, how agents stand: their trust and
their riskiest action, what their tasks have spent, and what waits for a person. In a
pipe, and with --json, it prints that once.

First come tasks that need somebody, and their agents: that wait for an approval or were
escalated, that have calls of unknown outcome, or nothing left to spend. Then those that
run, as far as there is room: --limit bounds each of the three tables, and what is not
shown is counted below it. It looks at the agents named, or at all. Those that run are
looked through for an empty budget no further than the first 200.

JSON: {"at", "agents": [{"agent", "trust", "lower", "upper", "riskiest", "level"}],
"tasks": [as of tasks list, with "needs"], "approvals": [as of approvals list], "more":
{"agents", "tasks", "approvals"}}; needs is escalation, approval, outcome or budget.`

// standings is what is watched, at one moment.
type standings struct {
	At        time.Time     `json:"at"`
	Agents    []agentRow    `json:"agents"`
	Tasks     []taskRow     `json:"tasks"`
	Approvals []approvalRow `json:"approvals"`

	More beyond `json:"more"`

	budgets []string // of the tasks
}

// beyond counts what is not shown.
type beyond struct {
	Agents    int `json:"agents"`
	Tasks     int `json:"tasks"`
	Approvals int `json:"approvals"`
}

type agentRow struct {
	Agent    string  `json:"agent"`
	Trust    float64 `json:"trust"`
	Lower    float64 `json:"lower"`
	Upper    float64 `json:"upper"`
	Riskiest string  `json:"riskiest"`
	Level    float64 `json:"level"`
}

func newWatch() *cobra.Command {
	var f storeFlags
	var limit int
	var every time.Duration
	c := &cobra.Command{
		Use: "watch [AGENT...]", Short: "Watch trust, risk, budgets and what waits for a person", Long: watchHelp + storeHelp,
		Example: "  deltactl watch --store redis://localhost:6379 desk",
		PreRunE: func(*cobra.Command, []string) error {
			if limit < 1 || limit > delta.MaxTasks || every < 100*time.Millisecond {
				return usageError{fmt.Errorf("--limit is %d and --every %v, want 1 to %d, and 100ms or more", limit, every, delta.MaxTasks)}
			}
			return nil
		},
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, agents []string) error {
			g := &gaze{d: d, named: agents, limit: limit}
			look := g.look
			if f.json || !table.IsTerminal(c.OutOrStdout()) {
				return watchOnce(c, &f, look)
			}
			return watchOn(c, look, every)
		}),
	}
	c.Flags().IntVar(&limit, "limit", 10, "rows of each table at most")
	c.Flags().DurationVar(&every, "every", time.Second, "how often to look")
	f.add(c)
	return c
}

func watchOnce(c *cobra.Command, f *storeFlags, look func(context.Context) (standings, error)) error {
	s, err := look(c.Context())
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(c.OutOrStdout(), s)
	}
	return s.print(c.OutOrStdout(), false)
}

// watchOn draws until the person, or a signal, ends it: that is no failure.
func watchOn(c *cobra.Command, look func(context.Context) (standings, error), every time.Duration) error {
	w := &watching{ctx: c.Context(), look: look, every: every}
	_, err := tea.NewProgram(w, tea.WithContext(c.Context()), tea.WithInput(c.InOrStdin()), tea.WithOutput(c.OutOrStdout())).Run()
	if errors.Is(err, tea.ErrInterrupted) || c.Context().Err() != nil {
		return nil
	}
	return err
}

// Cells of a screen are no wider than this: one long name must not push the others out of sight.
const (
	widestID   = 48
	widestText = 28
)

// print writes the tables, and what is not in them. On a screen long cells end in an ellipsis.
func (s *standings) print(w io.Writer, screen bool) error {
	tables, id, text := table.New, orNil, orNil
	if screen {
		tables = table.Aligned
		id = func(s string) any { return orNil(table.Cut(action.Visible(s), widestID)) }
		text = func(s string) any { return orNil(table.Cut(action.Visible(s), widestText)) }
	}
	t := tables(w, "agent", "trust", "lower", "upper", "riskiest", "level")
	for _, r := range s.Agents {
		t.Row(id(r.Agent), r.Trust, r.Lower, r.Upper, text(r.Riskiest), r.Level)
	}
	err := errors.Join(t.Flush(), beyondOf(w, s.More.Agents, "agent"))
	t = tables(w, "task", "needs", "status", "runs", "waiting", "unknown", "spent")
	for i, r := range s.Tasks {
		t.Row(id(r.ID), orNil(r.Needs), r.Status, r.Runs, r.Waiting, r.Unknown, text(s.budgets[i]))
	}
	err = errors.Join(err, t.Flush(), beyondOf(w, s.More.Tasks, "task"))
	t = tables(w, "approval", "action", "risk", "cost", "requester")
	for _, r := range s.Approvals {
		t.Row(id(r.ID), text(r.Action), r.Risk, text(fmt.Sprint(r.Cost)), text(r.Requester))
	}
	return errors.Join(err, t.Flush(), beyondOf(w, s.More.Approvals, "approval"))
}

// beyondOf says how many more there are, and parts the tables.
func beyondOf(w io.Writer, n int, thing string) error {
	line := "\n"
	if n > 0 {
		line = fmt.Sprintf("… %d more %s\n\n", n, strings.TrimPrefix(counted(n, thing), fmt.Sprint(n, " ")))
	}
	_, err := io.WriteString(w, line)
	return err
}

// watching is the screen: what was seen last, and what went wrong since.
type watching struct {
	ctx    context.Context
	look   func(context.Context) (standings, error)
	every  time.Duration
	seen   standings
	err    error
	width  int
	height int
}

// seenMsg is what a look brought; lookMsg says that it is time for the next.
type (
	seenMsg struct {
		standings
		err error
	}
	lookMsg struct{}
)

// Init looks for the first time.
func (w *watching) Init() tea.Cmd { return w.again }

func (w *watching) again() tea.Msg {
	s, err := w.look(w.ctx)
	return seenMsg{s, err}
}

// Update takes in what was seen and what the person wants.
func (w *watching) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.KeyPressMsg:
		if slices.Contains([]string{"q", "esc", "ctrl+c"}, m.String()) {
			return w, tea.Quit
		}
	case tea.WindowSizeMsg:
		w.width, w.height = m.Width, m.Height
	case lookMsg:
		return w, w.again
	case seenMsg:
		if w.err = m.err; m.err == nil {
			w.seen = m.standings
		}
		return w, tea.Tick(w.every, func(time.Time) tea.Msg { return lookMsg{} })
	}
	return w, nil
}

// View draws the tables. What failed is said above what was seen before.
func (w *watching) View() tea.View {
	var b strings.Builder
	switch {
	case w.err != nil:
		fmt.Fprintf(&b, "%s (q quits)\n\n", action.Visible(w.err.Error()))
	case w.seen.At.IsZero():
		b.WriteString("looking … (q quits)\n\n")
	default:
		fmt.Fprintf(&b, "%s (q quits)\n\n", w.seen.At.Format(time.RFC3339))
	}
	if !w.seen.At.IsZero() {
		_ = w.seen.print(&b, true) // a strings.Builder takes all
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if w.height > 0 && len(lines) > w.height {
		lines = append(lines[:w.height-1], "…")
	}
	for i, line := range lines {
		lines[i] = table.Cut(line, w.width)
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}
