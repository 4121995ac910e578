package riskbench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Table returns a report as rows of text, a header first. In the column of a metric what was measured stands beside its
// target; the columns of the baselines hold their gaps.
func (r *Report) Table() (header []string, rows [][]string) {
	header = []string{"scenario", "gap %", "ECE %", "cover", "also", "verdict"}
	others := r.others()
	header = append(header, others...)
	for _, list := range [][]Result{r.Scenarios, r.Families} {
		for _, x := range list {
			row := r.row(x.Scenario, "delay median", "delay p90", "gated", "regret median", "early regret")
			if s, ok := x.Of(Delta); ok && x.Oracle != nil && s.Delay != nil {
				o := x.Oracle.Delay
				row[4] += fmt.Sprintf(", oracle %.0f/%.0f, matched %.0f/%.0f, oracle %.0f/%.0f",
					o.Median, o.P90, s.Delay.MatchedMedian, s.Delay.MatchedP90, o.MatchedMedian, o.MatchedP90)
			}
			for _, o := range others {
				s, ok := x.Of(o)
				row = append(row, percent(s.Gap, ok))
			}
			rows = append(rows, row)
		}
	}
	if len(r.Mean) > 0 {
		rows = append(rows, r.meanRow(others), r.medianRow(others))
	}
	for _, x := range r.Costs {
		row := r.row(x.Scenario)
		for _, o := range others {
			cell := "-"
			for _, s := range x.Scores {
				if s.Name == o {
					cell = percent(s.Gap, true)
				}
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return header, rows
}

// others are the names of the baselines that ran.
func (r *Report) others() (out []string) {
	var all []string
	switch {
	case len(r.Scenarios) > 0:
		all = names(r.Scenarios[0])
	case len(r.Families) > 0:
		all = names(r.Families[0])
	case len(r.Costs) > 0:
		for _, s := range r.Costs[0].Scores {
			all = append(all, s.Name)
		}
	}
	for _, name := range all {
		if name != Delta {
			out = append(out, name)
		}
	}
	return out
}

func names(r Result) (out []string) {
	for _, s := range r.Scores {
		out = append(out, s.Name)
	}
	return out
}

func (r *Report) meanRow(others []string) []string {
	row := r.row(overall, "regret")
	regrets := []string{}
	for _, m := range r.Mean {
		if m.Name != Delta && m.Name != "declared" && m.Name != "reference" {
			regrets = append(regrets, fmt.Sprintf("%s %.1f", m.Name, m.Regret))
		}
		if m.Name == Delta {
			row[2] = percent(m.ECE, true)
		}
	}
	row[4] += "; " + strings.Join(regrets, ", ")
	for _, o := range others {
		for _, m := range r.Mean {
			if m.Name == o {
				row = append(row, percent(m.Gap, true))
			}
		}
	}
	return row
}

// medianRow holds the medians of the gaps over the eleven, where no single scenario weighs more than another.
func (r *Report) medianRow(others []string) []string {
	row := []string{"median of the eleven", "-", "-", "-", "", "-"}
	at := map[string]string{}
	for _, m := range r.Mean {
		at[m.Name] = percent(m.Median, true)
	}
	if x, ok := at[Delta]; ok {
		row[1] = x
	}
	for _, o := range others {
		row = append(row, at[o])
	}
	return row
}

// row is a scenario's verdicts: gap, calibration error and coverage in columns of their own, the others in one. Of too few
// seeds to tell their spread nothing is judged.
func (r *Report) row(scenario string, also ...string) []string {
	row := []string{scenario, "-", "-", "-", "", "pass"}
	var rest []string
	for _, v := range r.Verdicts {
		if v.Scenario != scenario {
			continue
		}
		switch {
		case !v.Pass && !v.Close:
			row[5] = "MISS"
		case !v.Pass && row[5] == "pass":
			row[5] = "close"
		}
		switch v.Metric {
		case "gap":
			row[1] = v.cell()
		case "ece":
			row[2] = v.cell()
		case "cover":
			row[3] = v.cell()
		}
		for _, name := range also {
			if v.Metric == name {
				rest = append(rest, shortNames.Replace(name)+" "+v.cell())
			}
		}
	}
	row[4] = strings.Join(rest, ", ")
	if r.Seeds < 2*blocks {
		row[5] = "?"
	}
	return row
}

var shortNames = strings.NewReplacer("delay median", "delay", "delay p90", "p90", "regret median", "regret", "early regret", "regret")

// scale is by what the metric is multiplied to be shown, and with how many decimals.
func (v Verdict) scale() (by float64, decimals int) {
	switch v.Metric {
	case "gap", "ece":
		return 100, 2
	case "cover":
		return 1, 3
	case "gated":
		return 1, 4
	case "regret", "regret median", "early regret":
		return 1, 1
	}
	return 1, 0
}

// measured is what was measured, with as many digits as it takes to stand to the target as the unrounded number does, and
// its standard error with two that count.
func (v Verdict) measured() string {
	by, decimals := v.scale()
	text := strconv.FormatFloat(by*v.Measured, 'f', decimals, 64)
	for more := 1; more <= 6; more++ {
		shown := v
		shown.Measured, _ = strconv.ParseFloat(text, 64) // it was just formatted
		shown.Measured /= by
		if shown.within(1e-12) == v.Pass {
			break
		}
		text = strconv.FormatFloat(by*v.Measured, 'f', decimals+more, 64)
	}
	if v.SE > 0 {
		text += " ± " + strconv.FormatFloat(by*v.SE, 'f', max(0, 1-int(math.Floor(math.Log10(by*v.SE)+1e-9))), 64)
	}
	return text
}

// cell is what was measured and how it stands to the target.
func (v Verdict) cell() string {
	short := func(f float64) string {
		if v.Metric == "gap" || v.Metric == "ece" {
			return fmt.Sprintf("%.3g", 100*f)
		}
		return fmt.Sprintf("%.4g", f)
	}
	switch {
	case v.Lo > 0 && v.Hi >= 1 && v.Pass:
		return v.measured() + " ≥ " + short(v.Lo)
	case v.Lo > 0 && v.Hi >= 1:
		return v.measured() + " < " + short(v.Lo)
	case v.Lo > 0 && v.Pass:
		return fmt.Sprintf("%s in %s–%s", v.measured(), short(v.Lo), short(v.Hi))
	case v.Lo > 0:
		return fmt.Sprintf("%s not in %s–%s", v.measured(), short(v.Lo), short(v.Hi))
	case v.Pass:
		return v.measured() + " ≤ " + short(v.Hi)
	}
	return v.measured() + " > " + short(v.Hi)
}

func percent(x float64, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", 100*x)
}

// Table returns the log losses of a recording as rows of text, one per part and one for all, a header first.
func (r Recorded) Table() (header []string, rows [][]string) {
	header = []string{"data", "rows", "errs", "metric"}
	for _, s := range r.Scores {
		header = append(header, s.Name)
	}
	parts := r.Files
	if len(parts) == 0 {
		parts = []Recorded{r}
	} else {
		all := r
		all.Data = "all"
		parts = append(parts[:len(parts):len(parts)], all)
	}
	for _, p := range parts {
		for _, m := range []struct {
			name   string
			value  func(RecordedScore) float64
			format string
		}{
			{"log loss", func(s RecordedScore) float64 { return s.LogLoss }, "%.4f"},
			{"± over runs", func(s RecordedScore) float64 { return s.SE }, "%.4f"},
			{"above delta", func(s RecordedScore) float64 { return s.Above }, "%+.4f"},
			{"± over runs", func(s RecordedScore) float64 { return s.AboveSE }, "%.4f"},
			{"Brier", func(s RecordedScore) float64 { return s.Brier }, "%.4f"},
			{"ECE %", func(s RecordedScore) float64 { return 100 * s.ECE }, "%.2f"},
			{"NIS", func(s RecordedScore) float64 { return s.NIS }, "%.2f"},
			{"cost/1000", func(s RecordedScore) float64 { return s.Cost }, "%.1f"},
		} {
			row := []string{p.Data, fmt.Sprint(p.Rows), fmt.Sprint(p.Errs), m.name}
			for _, s := range p.Scores {
				row = append(row, fmt.Sprintf(m.format, m.value(s)))
			}
			rows = append(rows, row)
		}
	}
	return header, rows
}

// Markdown returns rows of text as a table of Markdown.
func Markdown(header []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(header)
	b.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}
