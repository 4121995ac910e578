package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// verdict is a person's answer.
type verdict int

const (
	silence verdict = iota // no answer in time: neither consent nor refusal
	yes
	no
)

// approver is the person at the desk.
type approver interface {
	name() string
	describe() string
	patience() time.Duration // how long a request waits for it
	// answer decides about the request that has just been shown. It returns silence when ctx ends.
	answer(ctx context.Context) (v verdict, reason string, err error)
}

// badge is what an approver shows at the door. The desk takes it for granted; elsewhere a login stands behind it.
type badge string

func signIn(_ context.Context, credential any) (string, error) {
	b, ok := credential.(badge)
	if !ok {
		return "", errors.New("show a badge")
	}
	return string(b), nil
}

// early is how long before a request expires the person is given up on.
const early = 100 * time.Millisecond

// decide shows a request to the person and passes the answer on.
func (s *story) decide(ctx context.Context, a delta.Approval) error {
	s.show(a)
	expires := time.UnixMicro(a.Expires)
	waiting, cancel := context.WithDeadline(ctx, expires.Add(-early))
	defer cancel()
	v, reason, err := s.approver.answer(waiting)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	// The word is told before it is passed on: once it is, the agent speaks.
	verb := map[verdict]string{yes: "approves", no: "rejects", silence: "says nothing: the request expires, which is no consent"}[v]
	if reason != "" {
		verb += fmt.Sprintf(": %q", reason)
	}
	s.say("     %-8s %s", s.by, verb)
	switch v {
	case yes:
		return s.engine.Approve(ctx, a.ID, s.by, reason)
	case no:
		return s.engine.Reject(ctx, a.ID, s.by, reason)
	}
	return pause(ctx, time.Until(expires)+time.Millisecond)
}

// show puts before a person everything that the engine has to say about a request. To a script it is told in short.
func (s *story) show(a delta.Approval) {
	if _, reads := s.approver.(*person); !reads {
		s.say("   ? %s asks to run %s %s, for %s", a.Agent, a.Action, action.Visible(string(a.Input)), euros(a.Forecast.Money))
		s.say("     why      %s: it fails %s, declared was %d", strings.Join(a.Why, "; "), chance(a.Risk.P, a.Risk.Lo, a.Risk.Hi, a.Risk.N), a.Risk.Declared)
		return
	}
	mark := "?"
	for line := range strings.Lines(a.Explain()) {
		s.say("   %s %s", mark, strings.TrimSuffix(line, "\n"))
		mark = " "
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listed is an approver whose answers are known beforehand.
type listed struct {
	goesOn    bool // the last answer is that of all that follow: a store remembers the risk that earlier runs met
	who, what string
	answers   []answer
	next      int
}

type answer struct {
	v      verdict
	reason string
}

// builtIn is who decides under --auto-approve.
func builtIn() *listed {
	return &listed{who: "robin", what: "auto-approve: the built-in approver, robin, rejects the first request with a reason, approves the second", goesOn: true, answers: []answer{
		{no, "the provider is down, wait for its status page"}, {yes, "the status page is green"},
	}}
}

func (l *listed) name() string            { return l.who }
func (l *listed) describe() string        { return l.what }
func (l *listed) patience() time.Duration { return time.Minute }

func (l *listed) answer(context.Context) (verdict, string, error) {
	if l.next == len(l.answers) && l.goesOn {
		l.next--
	}
	if l.next == len(l.answers) {
		return silence, "", fmt.Errorf("the script answers %d requests, and there was one more", l.next)
	}
	a := l.answers[l.next]
	l.next++
	return a.v, a.reason, nil
}

// parseScript reads "reject:too late,approve", or "@file" with one answer in each line.
func parseScript(text string) (*listed, error) {
	parts, where := strings.Split(text, ","), "entry"
	if name, ok := strings.CutPrefix(text, "@"); ok {
		file, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("script: %w", err)
		}
		parts, where = strings.Split(strings.TrimRight(string(file), "\n"), "\n"), "line"
	}
	l := &listed{who: "script", what: "answers from --script: " + strings.Join(parts, ", ")}
	for i, p := range parts {
		word, reason, _ := strings.Cut(strings.TrimSpace(p), ":")
		a := answer{reason: strings.TrimSpace(reason)}
		switch word {
		case "approve":
			a.v = yes
		case "reject":
			a.v = no
		default:
			return nil, fmt.Errorf("script: %s %d is %q, want approve or reject, perhaps with a reason behind a colon", where, i+1, word)
		}
		l.answers = append(l.answers, a)
	}
	return l, nil
}

// person is an approver at a terminal.
type person struct {
	who   string
	lines <-chan string // closed when there is no more input
	out   io.Writer
	limit time.Duration
}

// newPerson starts to read in, until that or ctx ends; what cannot be interrupted is a read of a terminal.
func newPerson(ctx context.Context, who string, in io.Reader, out io.Writer, limit time.Duration) *person {
	lines := make(chan string, 64)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return &person{who, lines, out, limit}
}

func (p *person) name() string { return p.who }
func (p *person) describe() string {
	return fmt.Sprintf("%s, at this terminal, with %v for each answer", p.who, p.limit)
}
func (p *person) patience() time.Duration { return p.limit }

func (p *person) answer(ctx context.Context) (verdict, string, error) {
	p.forget()
	for {
		word, err := p.ask(ctx, "approve? [y/n]")
		switch {
		case err != nil || ctx.Err() != nil:
			return silence, "", err
		case strings.EqualFold(word, "y"), strings.EqualFold(word, "yes"):
			return yes, "", nil
		case strings.EqualFold(word, "n"), strings.EqualFold(word, "no"):
			reason, err := p.ask(ctx, "why not? (the agent will read it)")
			return no, reason, err // a refusal counts, with or without words
		}
	}
}

// forget drops what was typed before the question: it was the answer to another.
func (p *person) forget() {
	for {
		select {
		case _, more := <-p.lines:
			if !more {
				return
			}
		default:
			return
		}
	}
}

// ask returns a line, or nothing when ctx ends first.
func (p *person) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprintf(p.out, "     > %s ", question)
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", errors.New("the input ended before the request was answered")
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		fmt.Fprintln(p.out)
		return "", nil
	}
}
