package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Enforced says how a limit is enforced on this machine.
type Enforced struct {
	Limit Limit
	How   string // by what; "waived: …" and why where it is not, "unlimited" where there is none
	Err   string // why it cannot be enforced; no tool runs then
}

// Report says what a machine can do.
type Report struct {
	Bubblewrap string // where it is and its version, "" where there is none
	Limits     []Enforced
	Starts     time.Duration // what it took to run a program that does nothing
	Err        string        // why no tool can be run, "" where they can
}

// OK reports whether tools can be run.
func (r Report) OK() bool { return r.Err == "" }

// String is the report in lines of text.
func (r Report) String() string {
	var b strings.Builder
	if r.Bubblewrap != "" {
		fmt.Fprintf(&b, "bubblewrap: %s\n", r.Bubblewrap)
	}
	for _, l := range r.Limits {
		if l.Err != "" {
			fmt.Fprintf(&b, "%s: NOT ENFORCED: %s\n", l.Limit, l.Err)
		} else {
			fmt.Fprintf(&b, "%s: %s\n", l.Limit, l.How)
		}
	}
	if r.OK() {
		fmt.Fprintf(&b, "tools run, a start takes %v\n", r.Starts.Round(time.Millisecond))
	} else {
		fmt.Fprintf(&b, "no tool runs: %s\n", r.Err)
	}
	return b.String()
}

// Probe finds out what this machine can enforce of the configuration, and runs a program that does nothing.
func (s *Sandbox) Probe(ctx context.Context) Report {
	var r Report
	if s.cfg.None != "" {
		r.Limits = []Enforced{{Limit: Time, How: "the call is ended"}, {Limit: Output, How: "the call is ended"}}
		return r
	}
	w, err := s.wrapper()
	if err != nil {
		r.Err = action.TextOf(err)
		return r
	}
	r.Bubblewrap = fmt.Sprintf("%s (%s)", w.version, w.path)
	// What cannot be enforced is told apart limit by limit: each is waived in turn.
	trial := &Sandbox{cfg: s.cfg, folders: s.folders, log: s.log, waived: map[Limit]bool{}}
	trial.cfg.Waive = waivable
	p, err := trial.plan(w)
	if err != nil {
		r.Err = action.TextOf(err)
		return r
	}
	for _, l := range []Limit{Memory, CPU, Pids, FileSize, OpenFiles, Tmp, Time, Output} {
		e := Enforced{Limit: l, How: p.how[l]}
		if why, no := strings.CutPrefix(e.How, "waived: "); no && !slices.Contains(s.cfg.Waive, l) {
			e.How, e.Err = "", why
		}
		r.Limits = append(r.Limits, e)
	}
	began := time.Now()
	if _, err := s.Command("/bin/sh", "-c", ":").Run(ctx, nil); err != nil {
		r.Err = action.TextOf(err)
	}
	r.Starts = time.Since(began)
	return r
}
