package engine

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// shown is what people see of an agent's beliefs when they look into the store with its own tools: its trust, and the risk
// of the actions it ran, as of this fold.
func shown(rules *Rules, agent *Agent, sp *txn.Space, b risk.Belief, steps []step, at int64) []txn.Clause {
	t := rules.Model.Trust(b)
	asOf := time.UnixMicro(at).UTC().Format(time.RFC3339)
	trust := view("trust",
		"score", decimal(t.Score), "lower", decimal(t.Lower), "upper", decimal(t.Upper),
		"ok", strconv.FormatInt(t.Ok, 10), "err", strconv.FormatInt(t.Err, 10),
		"violations", strconv.FormatInt(sp.Counters[countBreach], 10),
		"surprise", decimal(steps[len(steps)-1].innovation.Surprise), "as_of", asOf)
	ran := map[string]risk.Declaration{}
	for _, s := range steps {
		ran[s.observed.Action] = declarationOf(rules, agent, s.observed)
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(ran)) {
		fields = append(fields, name, riskText(rules.Model.Risk(b, ran[name]), ran[name].Risk))
	}
	return []txn.Clause{trust, view("risk", fields...)}
}

// riskText is the risk of an action in words: the level that gates, the probability of Err with its interval, and how many
// outcomes it rests on.
func riskText(e risk.Estimate, declared int) string {
	return "level " + decimal(e.Effective(declared, 0)) + " declared " + strconv.Itoa(declared) +
		" p " + decimal(e.P) + " in " + decimal(e.Lo) + ".." + decimal(e.Hi) + " of " + strconv.FormatInt(e.N, 10)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }

func view(name string, fields ...string) txn.Clause {
	return txn.Clause{Op: txn.Show, Key: name, Val: strings.Join(fields, "\n")}
}
