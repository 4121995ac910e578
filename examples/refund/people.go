package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// person is who the workflow asks.
type person interface {
	name() string
	// answer is a JSON document for the question, or an error that ends the story.
	answer(ctx context.Context, w workflow.Wait) (json.RawMessage, error)
	// decide says yes or no.
	decide(ctx context.Context, question string) (bool, error)
}

// scripted is a person whose answers are known beforehand.
type scripted struct {
	answers []json.RawMessage
	next    int
}

// builtIn answers wrongly first: what fails the schema is asked for again.
func builtIn() *scripted {
	return &scripted{answers: []json.RawMessage{
		json.RawMessage(`{"amount": -40, "reason": "arrived broken"}`), json.RawMessage(`{"amount": 40, "reason": "arrived broken"}`),
	}}
}

// readScript reads a file with one JSON document in each line.
func readScript(path string) (*scripted, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	s := &scripted{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if !json.Valid([]byte(line)) {
			return nil, fmt.Errorf("script: line %d of %s is no JSON document", i+1, path)
		}
		s.answers = append(s.answers, json.RawMessage(line))
	}
	return s, nil
}

func (s *scripted) name() string { return "ana" }

func (s *scripted) answer(context.Context, workflow.Wait) (json.RawMessage, error) {
	if s.next == len(s.answers) {
		return nil, fmt.Errorf("the script answers %d questions, and there was one more", s.next)
	}
	s.next++
	return s.answers[s.next-1], nil
}

// decide approves what is asked for, and tries nothing again.
func (s *scripted) decide(_ context.Context, question string) (bool, error) {
	return strings.HasPrefix(question, "approve"), nil
}

// typist is a person at a terminal.
type typist struct {
	who   string
	lines <-chan string // closed when there is no more input
	out   io.Writer
}

// newTypist starts to read in, until that or ctx ends; what cannot be interrupted is a read of a terminal.
func newTypist(ctx context.Context, who string, in io.Reader, out io.Writer) *typist {
	lines := make(chan string)
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
	return &typist{who, lines, out}
}

func (p *typist) name() string { return p.who }

func (p *typist) answer(ctx context.Context, _ workflow.Wait) (json.RawMessage, error) {
	amount, err := p.ask(ctx, "amount in euros")
	if err != nil {
		return nil, err
	}
	reason, err := p.ask(ctx, "reason")
	if err != nil {
		return nil, err
	}
	doc := map[string]any{"amount": amount, "reason": reason} // what is no number is passed on, and asked for again
	if n, err := strconv.Atoi(amount); err == nil {
		doc["amount"] = n
	}
	return json.Marshal(doc)
}

func (p *typist) decide(ctx context.Context, question string) (bool, error) {
	for {
		word, err := p.ask(ctx, question)
		switch {
		case err != nil:
			return false, err
		case strings.EqualFold(word, "y"), strings.EqualFold(word, "yes"):
			return true, nil
		case strings.EqualFold(word, "n"), strings.EqualFold(word, "no"):
			return false, nil
		}
	}
}

func (p *typist) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprintf(p.out, "     > %s: ", question)
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", errors.New("the input ended before the question was answered")
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		fmt.Fprintln(p.out)
		return "", context.Cause(ctx)
	}
}
