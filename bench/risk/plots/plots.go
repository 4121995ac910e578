package plots

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	riskbench "github.com/seed-ab2cfece/delta-agents/bench/risk"
)

var (
	blue  = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	band  = color.NRGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0x38}
	black = color.RGBA{A: 0xff}
	grey  = color.RGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}
	red   = color.RGBA{R: 0xc0, G: 0x39, B: 0x2b, A: 0xff}
	// others are told apart without colour vision too (Okabe and Ito 2008).
	others = []color.Color{
		color.RGBA{R: 0xd5, G: 0x5e, A: 0xff}, color.RGBA{G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
		color.RGBA{R: 0xe6, G: 0x9f, A: 0xff}, color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, grey, black,
	}
)

// save writes a picture in both formats and returns the paths.
func save(p *plot.Plot, dir, name string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p.Legend.XOffs = -vg.Points(8) // away from the edge
	var out []string
	for _, ext := range []string{".png", ".svg"} {
		path := filepath.Join(dir, name+ext)
		if err := p.Save(18*vg.Centimeter, 10*vg.Centimeter, path); err != nil {
			return out, fmt.Errorf("draw %s: %w", path, err)
		}
		out = append(out, path)
	}
	return out, nil
}

// headroom shows 0 to 1 and leaves room for the legend above.
func headroom(p *plot.Plot) {
	p.Legend.Top = true
	p.Y.Min, p.Y.Max = 0, 1.3
	var ticks plot.ConstantTicks
	for i := range 6 {
		v := float64(i) / 5
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.1f", v)})
	}
	p.Y.Tick.Marker = ticks
}

func line(xys plotter.XYs, c color.Color, width vg.Length) (*plotter.Line, error) {
	l, err := plotter.NewLine(xys)
	if err != nil {
		return nil, err
	}
	l.Color, l.Width = c, width
	return l, nil
}

// Trace draws the product's p̂ and its band along the stream of one seed of a scenario, against the true rate.
func Trace(dir string, s riskbench.Scenario, seed uint64) ([]string, error) {
	stream := s.Stream(seed)
	e := riskbench.Estimators()[0].New()
	var stated, truth, errs, lo, hi plotter.XYs
	for i, x := range stream.Steps {
		a := stream.Actions[x.Action]
		p, l, h := e.Predict(a)
		at := float64(i)
		stated, truth = append(stated, plotter.XY{X: at, Y: p}), append(truth, plotter.XY{X: at, Y: x.P})
		lo, hi = append(lo, plotter.XY{X: at, Y: l}), append(hi, plotter.XY{X: at, Y: h})
		if x.Err {
			errs = append(errs, plotter.XY{X: at, Y: 0})
		}
		e.Observe(a, x.Err)
	}
	for i := len(lo) - 1; i >= 0; i-- {
		hi = append(hi, lo[i])
	}
	p := plot.New()
	p.Title.Text = s.Name
	p.X.Label.Text, p.Y.Label.Text = "execution", "probability of Err"
	area, err := plotter.NewPolygon(hi)
	if err != nil {
		return nil, err
	}
	area.Color, area.LineStyle.Width = band, 0
	real, err := line(truth, black, vg.Points(1.2))
	if err != nil {
		return nil, err
	}
	told, err := line(stated, blue, vg.Points(1.2))
	if err != nil {
		return nil, err
	}
	p.Add(area, real, told)
	if len(errs) > 0 {
		ticks, err := plotter.NewScatter(errs)
		if err != nil {
			return nil, err
		}
		ticks.Color, ticks.Radius = red, vg.Points(1)
		p.Add(ticks)
		p.Legend.Add("an Err", ticks)
	}
	p.Legend.Add("true rate", real)
	p.Legend.Add("estimate", told)
	p.Legend.Add("90 % band", area)
	headroom(p)
	p.X.Max = 1.03 * float64(len(stream.Steps)) // the last label is not cut
	return save(p, dir, "trace-"+s.Name)
}

// Reliability draws what estimators stated against what happened, on logarithmic scales because rates of failure are small:
// on the diagonal both agree. What is below a thousandth is drawn there; a bin of fewer than [fewest] executions tells
// nothing and is left out.
func Reliability(dir, name string, bins []Named) ([]string, error) {
	p := plot.New()
	const least = 1e-3
	p.Title.Text = "reliability: " + name
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, upTo(1)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, upTo(1)
	p.X.Label.Text, p.Y.Label.Text = "stated probability of Err", "rate of Err"
	diagonal, err := line(plotter.XYs{{X: least, Y: least}, {X: 1, Y: 1}}, grey, vg.Points(.7))
	if err != nil {
		return nil, err
	}
	p.Add(diagonal)
	for i, b := range bins {
		var xys plotter.XYs
		for _, x := range b.Bins {
			if x.N < fewest {
				continue
			}
			xys = append(xys, plotter.XY{X: max(least, x.Stated), Y: max(least, x.Happened)})
		}
		if len(xys) == 0 {
			continue
		}
		l, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, err
		}
		l.Color, dots.Color = colour(b.Name, i), colour(b.Name, i)
		l.Width = width(b.Name)
		p.Add(l, dots)
		p.Legend.Add(b.Name, l, dots)
	}
	p.Legend.Top = true
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = least, 8, least, 1.1 // room for the legend on the right
	return save(p, dir, "reliability-"+name)
}

// fewest is how many executions a bin must hold to be drawn.
const fewest = 20

// upTo marks a logarithmic axis, but not beyond its most.
type upTo float64

// Ticks implements [plot.Ticker].
func (u upTo) Ticks(lo, hi float64) (out []plot.Tick) {
	for _, t := range (plot.LogTicks{Prec: -1}).Ticks(lo, hi) {
		if t.Value <= float64(u)*(1+1e-9) {
			out = append(out, t)
		}
	}
	return out
}

// Named is an estimator's bins.
type Named struct {
	Name string
	Bins []riskbench.Bin
}

func colour(name string, i int) color.Color {
	if name == riskbench.Delta {
		return blue
	}
	return others[(i+len(others)-1)%len(others)]
}

func width(name string) vg.Length {
	if name == riskbench.Delta {
		return vg.Points(2)
	}
	return vg.Points(.8)
}

// Gaps draws the gap of every estimator on every scenario, on a logarithmic scale, and its mean.
func Gaps(dir string, r *riskbench.Report) ([]string, error) {
	p := plot.New()
	p.Title.Text = "log loss above that of the exact filter"
	p.Y.Label.Text = "gap, % (at the bottom: 0.1 or less, or better than exact)"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	var names []string
	var dots, means plotter.XYs
	const least = .1 // per cent; below it, and on the other side of nought, is as good as nothing
	for _, list := range [][]riskbench.Result{r.Scenarios, r.Families} {
		for _, x := range list {
			names = names[:0]
			for i, s := range x.Scores {
				names = append(names, s.Name)
				dots = append(dots, plotter.XY{X: float64(i), Y: max(least, 100*s.Gap)})
			}
		}
	}
	for _, m := range r.Mean {
		for i, n := range names {
			if n == m.Name {
				means = append(means, plotter.XY{X: float64(i), Y: max(least, 100*m.Gap)})
			}
		}
	}
	if len(dots) == 0 {
		return nil, nil
	}
	small, err := plotter.NewScatter(dots)
	if err != nil {
		return nil, err
	}
	small.Color, small.Radius = grey, vg.Points(2)
	p.Add(plotter.NewGrid(), small)
	p.Legend.Add("a scenario", small)
	if len(means) > 0 {
		big, err := plotter.NewScatter(means)
		if err != nil {
			return nil, err
		}
		big.Color, big.Radius = blue, vg.Points(4)
		p.Add(big)
		p.Legend.Add("mean of the eleven", big)
	}
	p.Legend.Top = true
	p.NominalX(names...)
	p.X.Min, p.X.Max = -.5, float64(len(names))-.5
	p.Y.Min, p.Y.Max = least, 1e4 // room for the legend
	return save(p, dir, "gaps")
}

// Gate draws what every threshold asks and lets through, and what both cost together.
func Gate(dir string, g riskbench.GateReport) ([]string, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("thresholds: an approval costs %g, an Err let through %g", g.AskCost, g.ErrCost)
	p.X.Label.Text, p.Y.Label.Text = "threshold (effective risk)", "share"
	var asked, missed, cost plotter.XYs
	most := 1e-300
	for _, x := range g.Points {
		most = max(most, x.Cost)
	}
	for _, x := range g.Points {
		if x.Never {
			continue
		}
		asked = append(asked, plotter.XY{X: x.Threshold, Y: float64(x.Asked) / max(1, float64(g.Rows))})
		missed = append(missed, plotter.XY{X: x.Threshold, Y: float64(x.Missed) / max(1, float64(g.Errs))})
		cost = append(cost, plotter.XY{X: x.Threshold, Y: x.Cost / most})
	}
	for _, l := range []struct {
		name string
		xys  plotter.XYs
		c    color.Color
	}{{"calls asked about", asked, blue}, {"Errs let through", missed, red}, {"cost, of the highest", cost, black}} {
		drawn, err := line(l.xys, l.c, vg.Points(1.5))
		if err != nil {
			return nil, err
		}
		p.Add(drawn)
		p.Legend.Add(l.name, drawn)
	}
	if !g.Cheapest.Never {
		at, err := line(plotter.XYs{{X: g.Cheapest.Threshold, Y: 0}, {X: g.Cheapest.Threshold, Y: 1}}, grey, vg.Points(1))
		if err != nil {
			return nil, err
		}
		at.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(at)
		p.Legend.Add(fmt.Sprintf("cheapest: %.2f", g.Cheapest.Threshold), at)
	}
	headroom(p)
	p.X.Min, p.X.Max = 1, 5.1
	return save(p, dir, "gate")
}

// Report draws everything that a run can show: a trace of each scenario that ran, its reliability, and all gaps.
func Report(dir string, r *riskbench.Report) ([]string, error) {
	var out []string
	add := func(paths []string, err error) error {
		out = append(out, paths...)
		return err
	}
	for _, s := range riskbench.Scenarios() {
		for _, x := range r.Scenarios {
			if x.Scenario == s.Name {
				if err := add(Trace(dir, s, 0)); err != nil {
					return out, err
				}
			}
		}
	}
	for _, list := range [][]riskbench.Result{r.Scenarios, r.Families} {
		for _, x := range list {
			var bins []Named
			for _, s := range x.Scores {
				if s.Name != "declared" && s.Name != "reference" {
					bins = append(bins, Named{s.Name, s.Bins})
				}
			}
			if err := add(Reliability(dir, x.Scenario, bins)); err != nil {
				return out, err
			}
		}
	}
	return out, add(Gaps(dir, r))
}

// Recorded draws the reliability on recorded calls.
func Recorded(dir string, r riskbench.Recorded) ([]string, error) {
	var bins []Named
	for _, s := range r.Scores {
		bins = append(bins, Named{s.Name, s.Bins})
	}
	return Reliability(dir, "recorded", bins)
}
