package riskbench

import (
	"context"
	"fmt"
	"math"
)

// Call is one recorded execution.
type Call struct {
	Agent, Tool string
	Run         string // the task that it was part of, "" where unknown; runs are what a spread is told of
	Err         bool
}

// Record makes a stream of recorded calls. Every tool of an agent becomes an action of its own, declared at the same
// level; its rate is not known.
func Record(calls []Call, declared int) (Stream, error) {
	if declared < 1 || declared > 5 {
		return Stream{}, fmt.Errorf("declared risk is %d, want 1 to 5", declared)
	}
	var s Stream
	ids, tools, runs := map[Call]int{}, map[string]int{}, map[Call]int{}
	for _, c := range calls {
		key := Call{Agent: c.Agent, Tool: c.Tool}
		id, ok := ids[key]
		if !ok {
			id = len(s.Actions)
			ids[key] = id
			n, ok := tools[c.Tool]
			if !ok {
				n = len(tools)
				tools[c.Tool] = n
			}
			// Recorded names may be anything; the number of the tool is a name that every estimator takes.
			s.Actions = append(s.Actions, Action{ID: id, Agent: c.Agent, Name: fmt.Sprintf("tool-%d", n), Declared: declared})
		}
		of := Call{Agent: c.Agent, Run: c.Run}
		run, ok := runs[of]
		if !ok {
			run = len(runs)
			runs[of] = run
		}
		s.Steps = append(s.Steps, Step{Action: id, P: math.NaN(), Err: c.Err, Run: run})
	}
	s.count()
	return s, nil
}

// Share returns s as the work of one fleet: what is learned of a tool with one agent says something of the same tool with
// another. Agent and tool become tags of what either has; tools that one agent alone uses get no tag of their own.
func Share(s Stream) Stream {
	users, agents := map[string]int{}, map[string]int{}
	for _, a := range s.Actions {
		users[a.Name]++
		if _, ok := agents[a.Agent]; !ok {
			agents[a.Agent] = len(agents)
		}
	}
	out := Stream{Steps: s.Steps}
	for _, a := range s.Actions {
		var tags []string
		if len(agents) > 1 {
			tags = append(tags, fmt.Sprintf("agent-%d", agents[a.Agent]))
		}
		if users[a.Name] > 1 {
			tags = append(tags, a.Name)
		}
		a.Tags, a.Agent, a.Name = tags, "fleet", fmt.Sprintf("action-%d", a.ID)
		out.Actions = append(out.Actions, a)
	}
	return out
}

// Recorded is how estimators did on recorded calls, each predicted before its outcome is told.
type Recorded struct {
	Data   string          `json:"data"` // what was recorded, such as the file's name
	Rows   int             `json:"rows"`
	Errs   int             `json:"errs"`
	Scores []RecordedScore `json:"estimators"`
	Files  []Recorded      `json:"files,omitempty"` // the parts, where several recordings were put together by Pool
}

// RecordedScore is how one did.
type RecordedScore struct {
	Name    string  `json:"name"`
	LogLoss float64 `json:"logloss"`    // mean, nats per call
	SE      float64 `json:"logloss_se"` // its standard error over the runs, 0 of a single run
	Above   float64 `json:"above"`      // LogLoss above that of the first estimator
	AboveSE float64 `json:"above_se"`
	Brier   float64 `json:"brier"`
	ECE     float64 `json:"ece"`
	NIS     float64 `json:"nis"`
	Cost    float64 `json:"cost"` // per thousand calls of gating at p̂ > 1/11, where a needless gate costs 1 and a failure let through 10
	Bins    []Bin   `json:"bins"`

	sums   bins
	losses []float64 // log loss by run, summed
}

// Prequential takes every estimator along a recorded stream. progress is told the share that is done; it may be nil.
func Prequential(ctx context.Context, data string, s Stream, list []Kind, progress func(done, total int64)) (Recorded, error) {
	out := Recorded{Data: data, Rows: len(s.Steps)}
	for _, x := range s.Steps {
		if x.Err {
			out.Errs++
		}
	}
	total := int64(len(s.Steps) * len(list))
	done := int64(0)
	for _, k := range list {
		e := k.New()
		score := RecordedScore{Name: k.Name}
		for _, x := range s.Steps {
			if ctx.Err() != nil {
				return Recorded{}, context.Cause(ctx)
			}
			a := s.Actions[x.Action]
			q, _, _ := e.Predict(a)
			score.add(q, x)
			e.Observe(a, x.Err)
			if done++; progress != nil {
				progress(done, total)
			}
		}
		score.finish(float64(len(s.Steps)))
		out.Scores = append(out.Scores, score)
	}
	out.spread(s)
	return out, nil
}

func (r *RecordedScore) add(q float64, x Step) {
	y, err := 0., x.Err
	if err {
		y = 1
	}
	r.LogLoss += loss(y, q)
	for len(r.losses) <= x.Run {
		r.losses = append(r.losses, 0)
	}
	r.losses[x.Run] += loss(y, q)
	r.Brier += (q - y) * (q - y)
	r.NIS += (q - y) * (q - y) / math.Max(q*(1-q), 1e-9)
	switch {
	case q > bayesAt && !err:
		r.Cost++
	case q <= bayesAt && err:
		r.Cost += 10
	}
	r.sums.add(q, y)
}

func (r *RecordedScore) finish(n float64) {
	n = math.Max(n, 1) // an empty recording has no loss
	r.LogLoss /= n
	r.Brier /= n
	r.NIS /= n
	r.Cost *= 1000 / n
	r.ECE, r.Bins = r.sums.ece(), r.sums.filled()
}

// Pool puts recordings together that were judged apart: every row counts alike. One alone stays as it is.
func Pool(parts []Recorded) Recorded {
	if len(parts) == 1 {
		return parts[0]
	}
	var out Recorded
	for i, p := range parts {
		if i > 0 {
			out.Data += ", "
		}
		out.Data += p.Data
		out.Rows += p.Rows
		out.Errs += p.Errs
	}
	out.Files = parts
	for k := range parts[0].Scores {
		s := RecordedScore{Name: parts[0].Scores[k].Name}
		for _, p := range parts {
			o := p.Scores[k]
			w := float64(p.Rows) / math.Max(float64(out.Rows), 1)
			s.LogLoss += w * o.LogLoss
			s.Brier += w * o.Brier
			s.NIS += w * o.NIS
			s.Cost += w * o.Cost
			s.SE = math.Hypot(s.SE, w*o.SE) // recordings are independent
			s.Above += w * o.Above
			s.AboveSE = math.Hypot(s.AboveSE, w*o.AboveSE)
			s.sums.merge(&o.sums)
		}
		s.ECE, s.Bins = s.sums.ece(), s.sums.filled()
		out.Scores = append(out.Scores, s)
	}
	return out
}
