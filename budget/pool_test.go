package budget_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
)

func TestPoolsStartAnewAtMidnightUTC(t *testing.T) {
	limit := action.Limit{Tokens: action.Max(1)}
	at := func(s string) int64 {
		x, err := time.Parse(time.RFC3339Nano, s)
		assert.NoError(t, err)
		return x.UnixMicro()
	}
	for _, c := range []struct {
		name        string
		period      budget.Period
		now         string
		id          string
		from, until string
	}{
		{"the last microsecond of a day", budget.Day, "2026-02-28T23:59:59.999999Z", "p@2026-02-28", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"the first", budget.Day, "2026-03-01T00:00:00Z", "p@2026-03-01", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"another zone", budget.Day, "2026-03-01T01:30:00+02:00", "p@2026-02-28", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"a month", budget.Month, "2028-02-29T12:00:00Z", "p@2028-02", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"a year ends", budget.Month, "2026-12-31T23:59:59Z", "p@2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	} {
		p := budget.Pool{Name: "p", Period: c.period, Limit: limit}
		id, from, until := p.At(at(c.now))
		assert.Equal(t, c.id, id, c.name)
		assert.Equal(t, "p", budget.PoolName(id), c.name)
		assert.Equal(t, [2]int64{at(c.from), at(c.until)}, [2]int64{from, until}, c.name)
	}
	id, from, until := budget.Pool{Name: "p", Limit: limit}.At(at("2026-03-01T00:00:00Z"))
	assert.Equal(t, "p", id)
	assert.Zero(t, from)
	assert.Zero(t, until, "without a period it lasts for ever")
}

func TestPoolCheckNamesWhatIsWrong(t *testing.T) {
	tokens := action.Limit{Tokens: action.Max(1)}
	assert.NoError(t, budget.Pool{Name: "p", Limit: tokens, Period: budget.Month}.Check())
	for want, p := range map[string]budget.Pool{
		"name is empty":            {Limit: tokens},
		"nothing is limited":       {Name: "p"},
		"must name its agents":     {Name: "p", Limit: tokens, Shared: true},
		`period is "week"`:         {Name: "p", Limit: tokens, Period: "week"},
		"agent: name":              {Name: "p", Limit: tokens, Agents: []string{"a b"}},
		"money needs a currency":   {Name: "p", Limit: action.Limit{Money: action.Max(1)}},
		"limit tokens is -1, want": {Name: "p", Limit: action.Limit{Tokens: action.Max(-1)}},
	} {
		assert.ErrorContains(t, p.Check(), want)
	}
}

func TestCarve(t *testing.T) {
	acc := budget.Account{Limit: action.Limit{Tokens: action.Max(100)}, Granted: action.Cost{Tokens: 40}}
	for _, c := range []struct {
		name  string
		limit action.Limit
		want  int64 // tokens, -1 refused
	}{
		{"all that is left", action.Limit{Tokens: action.Max(60)}, 60},
		{"one more", action.Limit{Tokens: action.Max(61)}, -1},
		{"nothing would bound the child", action.Limit{}, -1},
		{"it bounds more than its parent", action.Limit{Tokens: action.Max(1), Calls: action.Max(7)}, 1},
		{"a currency of its own where there is none", action.Limit{Tokens: action.Max(1), Money: action.Max(1), Currency: "EUR"}, 1},
	} {
		cost, no := budget.Carve(acc, c.limit)
		if c.want < 0 {
			assert.NotNil(t, no, c.name)
			assert.True(t, cost.IsZero(), c.name)
			continue
		}
		assert.Nil(t, no, c.name)
		assert.Equal(t, c.want, cost.Tokens, c.name)
	}
}
