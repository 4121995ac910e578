package chat_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/planner/chat"
	"github.com/seed-ab2cfece/delta-agents/skills"
)

// However often a model reads, every prompt lies within what was reserved for it: the tokens of the task are not exceeded.
func TestReadingStaysWithinTheReservation(t *testing.T) {
	library := skills.New(fstest.MapFS{"big/SKILL.md": {Data: []byte("---\nname: big\ndescription: B.\n---\n" + strings.Repeat("word ", 4000))}})
	m := &recorder{}
	for i := range 4 {
		r := calls(chat.ToolCall{Name: "read_skill", Arguments: `{"name":"big"}`})
		r.Usage = chat.Usage{Known: true, Input: int64(1000 + 5000*i), Output: 50}
		m.lines = append(m.lines, r)
	}
	m.lines = append(m.lines, calls(chat.ToolCall{Name: "finish", Arguments: `{"verdict":"waiting"}`}))
	report, events := run(t, delta.Config{Skills: library}, delta.Goal{
		Text: "read", Skills: []string{"big"}, Limit: action.Limit{Tokens: action.Max(200_000)},
	}, m)
	assert.Equal(t, delta.RunDone, report.Ended)
	assert.Equal(t, 1, report.Steps, "reading is no step")
	var spent int64
	plans := 0
	for _, e := range events {
		if e.Type == ledger.Settled && e.Action == "delta.plan" {
			spent += e.Charged.Tokens
			plans++
			assert.False(t, e.Overrun, "proposal %d", plans)
		}
	}
	assert.LessOrEqual(t, spent, int64(200_000))
	assert.Len(t, m.heard, plans, "each prompt has a reservation of its own")
	assert.Equal(t, 5, plans)
}
