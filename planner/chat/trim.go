package chat

import (
	"fmt"
	"math"
)

// prompt is the conversation as it is sent.
func (t *talk) prompt() Prompt {
	p := Prompt{System: t.system, Tools: t.tools, MaxOutput: t.cfg.MaxOutput}
	opening := t.opening
	if t.dropped > 0 {
		opening.Text += fmt.Sprintf("\n\n(%d earlier exchanges were left out here to save room.)", t.dropped)
	}
	p.Messages = append(make([]Message, 0, 2*len(t.turns)+1), opening)
	for _, u := range t.turns {
		says, answers := Message{Assistant: true, Text: u.said.text}, Message{Text: u.text}
		for _, m := range u.said.calls {
			says.Calls = append(says.Calls, m.echo)
		}
		for _, a := range u.results {
			answers.Results = append(answers.Results, a.render(u.number))
		}
		p.Messages = append(p.Messages, says, answers)
	}
	return p
}

// overhead is what a message, a call or a tool costs beside its text, in bytes.
const overhead = 24

// mediaSize is what an image counts for, in bytes of text: some 1,600 tokens.
const mediaSize = 4800

// size is the length of a prompt in bytes.
func (p Prompt) size() int {
	n := 0
	for _, s := range p.System {
		n += len(s) + overhead
	}
	for _, tool := range p.Tools {
		n += len(tool.Name) + len(tool.Description) + len(tool.Schema) + overhead
	}
	for _, m := range p.Messages {
		n += len(m.Text) + overhead + len(m.Media)*mediaSize
		for _, c := range m.Calls {
			n += len(c.ID) + len(c.Name) + len(c.Arguments) + overhead
		}
		for _, r := range m.Results {
			n += len(r.ID) + len(r.Text) + overhead
		}
	}
	return n
}

// size of a reply in bytes, of what arrived.
func (r Reply) size() int {
	n := len(r.Text) + len(r.Refusal)
	for _, c := range r.Calls {
		n += len(c.Name) + len(c.Arguments) + overhead
	}
	return n
}

// firstRate is the number of tokens a byte before anything was measured, on the high side for text and JSON.
const firstRate = 1.0 / 3

// tokens estimates the tokens of that many bytes.
func (t *talk) tokens(bytes int) int { return int(math.Ceil(float64(bytes) * t.rate)) }

// measure learns from what a provider says a prompt was. It may make estimates finer, within bounds, a tenth on the high
// side.
func (t *talk) measure(sent int, u Usage) {
	if in := u.Tokens() - u.Output; u.Known && sent > 0 && in > 0 {
		t.rate = min(max(1.1*float64(in)/float64(sent), 0.1), 2)
	}
}

// fit trims the conversation where it would not fit: to three quarters of the room, so that what is sent stays the same
// for some steps.
func (t *talk) fit() error {
	if t.tokens(t.prompt().size()) <= t.limit {
		return nil
	}
	return t.shrink(t.limit*3/4, t.limit)
}

// leastBody is the least that is shown of an output that has to be cut, in bytes.
const leastBody = 256

// shrink drops the oldest exchanges until the prompt has at most want tokens; the last one stays. Where that is not
// enough, its results are cut. It fails where more than most remain.
func (t *talk) shrink(want, most int) error {
	size := func() int { return t.tokens(t.prompt().size()) }
	for len(t.turns) > 1 && size() > want {
		t.turns, t.dropped = t.turns[1:], t.dropped+1
	}
	for size() > want && t.halve() {
	}
	if n := size(); n > most {
		return fmt.Errorf("%w: the tools, the goal and the last results alone have about %d tokens, and there is room for %d: "+
			"offer fewer actions, set Config.Window to what the model has, or Config.MaxOutput lower", ErrTooLong, n, most)
	}
	return nil
}

// halve cuts the results of the last exchange, and reports whether anything was left to cut.
func (t *talk) halve() bool {
	if len(t.turns) == 0 {
		return false
	}
	any, results := false, t.turns[len(t.turns)-1].results
	for i := range results {
		if a := &results[i]; len(a.body) > leastBody && a.most > leastBody {
			a.most, any = max(min(a.most, len(a.body))/2, leastBody), true
		}
	}
	return any
}
