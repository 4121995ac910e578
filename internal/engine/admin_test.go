package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// A task that ended stays ended, whoever reuses its id.
func TestI12_EndedTasksStayEnded(t *testing.T) {
	d := open(t, plain())
	x, err := CancelTask(d.look(), d.who())
	require.NoError(t, err)
	d.must(x)
	assert.False(t, d.apply(Start(plain(), d.now(), 0)).OK)
	for _, end := range []func(*View, Who) (err error){
		func(v *View, w Who) error { _, err := CancelTask(v, w); return err },
		func(v *View, w Who) error { _, err := CloseTask(v, w); return err },
		func(v *View, w Who) error { _, err := Change(v, ledger.TaskChanged, v.Task, w); return err },
	} {
		f := action.FailureOf(end(d.look(), d.who()))
		require.NotNil(t, f)
		assert.Equal(t, action.TaskClosed, f.Code)
	}
	none := &View{Snap: d.snap}
	_, err = CancelTask(none, d.who())
	assert.ErrorContains(t, err, "no such task")
}

// Links are a function of the records: two that seal the same stretch write the same, in pieces or at once.
func TestI14_SealIsAFunctionOfTheRecords(t *testing.T) {
	d := open(t, plain())
	d.ok("confirm", `{"order":"A"}`, `{}`)
	genesis := ledger.Genesis(d.agent.Name, d.task)
	all := d.records(d.task)
	whole, end := Seal(d.agent.Name, d.task, genesis, all)
	first, link := Seal(d.agent.Name, d.task, genesis, all[:1])
	d.must(first)
	rest, last := Seal(d.agent.Name, d.task, link, all[1:])
	assert.Equal(t, end, last)
	assert.Equal(t, whole.Clauses, append(first.Clauses, rest.Clauses...))
	d.must(whole) // again, over what is sealed: nothing changes
	report, err := ledger.Verify(genesis, d.records(d.task))
	require.NoError(t, err)
	assert.Equal(t, int64(len(all)), report.Sealed)
	again, _ := Seal(d.agent.Name, d.task, genesis, d.records(d.task))
	assert.Empty(t, again.Clauses)
}

// An operator's reset is part of the agent's ledger and of what it folds to.
func TestI14_ResetsFold(t *testing.T) {
	d := open(t, plain())
	d.learn("confirm", true)
	d.learn("list", true)
	d.fold()
	records := d.records("")
	for _, name := range []string{"confirm", ""} {
		text, err := ledger.Encode(ledger.Event{Type: ledger.BeliefReset, Agent: d.agent.Name, Action: name})
		require.NoError(t, err)
		last := records[len(records)-1]
		last.Seq, last.Val = last.Seq+1, text
		records = append(records, last)
	}
	b, err := FoldBeliefs(d.rules, d.agent, records)
	require.NoError(t, err)
	assert.Equal(t, []string{"list"}, b.Names())
	assert.Equal(t, model.Trust(model.Prior()), model.Trust(b))
	records[0].Val = "{"
	_, err = FoldBeliefs(d.rules, d.agent, records)
	assert.ErrorContains(t, err, "record 1")
	_, err = FoldLedger(records)
	assert.ErrorContains(t, err, "record 1")
}
