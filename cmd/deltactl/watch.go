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

It shows the agents named, or the first ones of the store by name; --limit bounds each
of the three tables.

JSON: {"at", "agents": [{"agent", "trust", "lower", "upper", "riskiest", "level"}],
"tasks": [as of tasks list], "approvals": [as of approvals list]}.`

// standings is what is watched, at one moment.
type standings struct {
	At        time.Time     `json:"at"`
	Agents    []agentRow    `json:"agents"`
	Tasks     []taskRow     `json:"tasks"`
	Approvals []approvalRow `json:"approvals"`

	budgets []string // of the tasks
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
			look := func(ctx context.Context) (standings, error) { return d.standings(ctx, agents, limit) }
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
	return s.print(c.OutOrStdout(), table.New)
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

// standings looks at agents, or at the first ones of the store.
func (d *desk) standings(ctx context.Context, agents []string, limit int) (standings, error) {
	s := standings{At: time.Now().UTC(), Agents: []agentRow{}, Tasks: []taskRow{}, Approvals: []approvalRow{}}
	if len(agents) == 0 {
		err := d.agents(ctx, "", func(name string) (bool, error) {
			agents = append(agents, name)
			return len(agents) < limit, nil
		})
		if err != nil {
			return s, err
		}
	}
	for _, name := range agents[:min(limit, len(agents))] {
		if err := d.stands(ctx, name, limit, &s); err != nil {
			return s, err
		}
	}
	waiting, err := d.engine.Approvals(ctx, limit)
	if err != nil {
		return s, err
	}
	for _, a := range waiting[:min(limit, len(waiting))] {
		s.Approvals = append(s.Approvals, newApprovalRow(a))
	}
	return s, nil
}

// stands adds one agent and its tasks.
func (d *desk) stands(ctx context.Context, name string, limit int, s *standings) error {
	if err := d.adopt(ctx, name); err != nil {
		return err
	}
	t, err := d.engine.Trust(ctx, name)
	if err != nil {
		return err
	}
	row := agentRow{Agent: name, Trust: t.Score, Lower: t.Lower, Upper: t.Upper}
	risks, err := d.engine.Risks(ctx, name)
	if err != nil {
		return err
	}
	for _, r := range risks {
		if r.Effective > row.Level {
			row.Riskiest, row.Level = r.Action, r.Effective
		}
	}
	s.Agents = append(s.Agents, row)
	if len(s.Tasks) >= limit {
		return nil
	}
	page, err := d.engine.Tasks(ctx, delta.TaskQuery{Agent: name, Limit: limit - len(s.Tasks)})
	for _, x := range page.Tasks {
		s.Tasks = append(s.Tasks, newTaskRow(x))
		s.budgets = append(s.budgets, spentOf(x))
	}
	return err
}

// spentOf says what a task has spent of what is limited: "3 of 10 calls".
func spentOf(x delta.TaskStanding) string {
	var parts []string
	b := x.Budget
	for a := range action.AxisCount {
		if n, limited := b.Limit.On(a).Get(); limited {
			parts = append(parts, a.Amount(b.Spent.Amount(a), b.Limit.Currency)+" of "+a.Amount(n, b.Limit.Currency))
		}
	}
	return strings.Join(parts, ", ")
}

func (s *standings) print(w io.Writer, tables func(io.Writer, ...string) *table.Writer) error {
	t := tables(w, "agent", "trust", "lower", "upper", "riskiest", "level")
	for _, r := range s.Agents {
		t.Row(r.Agent, r.Trust, r.Lower, r.Upper, orNil(r.Riskiest), r.Level)
	}
	err := t.Flush()
	fmt.Fprintln(w)
	t = tables(w, "task", "status", "runs", "waiting", "unknown", "spent")
	for i, r := range s.Tasks {
		t.Row(r.ID, r.Status, r.Runs, r.Waiting, r.Unknown, orNil(s.budgets[i]))
	}
	err = errors.Join(err, t.Flush())
	fmt.Fprintln(w)
	t = tables(w, "approval", "action", "risk", "cost", "requester")
	for _, r := range s.Approvals {
		t.Row(r.ID, r.Action, r.Risk, r.Cost, orNil(r.Requester))
	}
	return errors.Join(err, t.Flush())
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
		_ = w.seen.print(&b, table.Aligned) // a strings.Builder takes all
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
