package delta

import (
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// hiddenSecret stands in an event for a value that its schema marks as secret.
const hiddenSecret = "(secret)"

// hide takes out of an event what the schemas of its action mark as secret: of its input, of its output, and of the input
// that a request for an approval shows. The ledger itself keeps what was called, because it is run from there: it is handed
// out as it is by [Task.Ledger] and [Engine.Ledger] alone. Of an action that this engine does not know nothing can be told.
func (e *Engine) hide(ev *ledger.Event) {
	if ev.Action == "" || len(ev.Input)+len(ev.Output)+len(ev.State) == 0 {
		return
	}
	e.mu.Lock()
	s := e.agents[ev.Agent]
	e.mu.Unlock()
	if s != nil {
		s.agent.hide(ev)
	}
}

func (a *Agent) hide(ev *ledger.Event) {
	in, out := a.secretsOf(ev.Action)
	ev.Input = hidden(ev.Input, in)
	ev.Output = hidden(ev.Output, out)
	if len(in) > 0 && len(ev.State) > 0 {
		below := make([]string, len(in))
		for i, path := range in {
			below[i] = "input." + path
		}
		ev.State = hidden(ev.State, below)
	}
}

// secretsOf returns the secret paths in inputs and outputs of an action, whatever version is called: rather too much is
// hidden than too little.
func (a *Agent) secretsOf(name string) (in, out []string) {
	if d := a.defs[name]; d != nil && a.card == nil {
		if d.in != nil {
			in = d.in.Secrets()
		}
		if d.out != nil {
			out = d.out.Secrets()
		}
		return in, out
	}
	if a.card != nil {
		for _, x := range a.card.Actions {
			if x.Name == name {
				return x.Secret, x.Results
			}
		}
	}
	return nil, nil
}

// hidden is a document without the values at secret paths. One that cannot be read is left out as a whole.
func hidden(raw json.RawMessage, secrets []string) json.RawMessage {
	if len(raw) == 0 || len(secrets) == 0 {
		return raw
	}
	doc, f := schema.Canonical(raw, len(raw))
	if f != nil {
		return json.RawMessage(`"` + hiddenSecret + `"`)
	}
	return json.RawMessage(schema.Redact(doc, secrets, func(string, string) string { return hiddenSecret }).Text())
}

// hideIn is hide for the encoded event behind the first n bytes of a preview's.
func (t *Task) hideIn(event []byte, n int, name string) []byte {
	in, out := t.agent.secretsOf(name)
	if len(in)+len(out) == 0 || len(event) <= n {
		return event
	}
	ev, err := ledger.Decode(string(event[n:]))
	if err != nil {
		return event[:n]
	}
	t.agent.hide(&ev)
	shown, err := ledger.AppendEvent(event[:n], &ev)
	if err != nil {
		return event[:n]
	}
	return shown
}

// secret reports whether anything that the action takes or gives is marked as secret.
func (d *declaration) secret() bool {
	return d.in != nil && d.in.HoldsSecrets() || d.out != nil && d.out.HoldsSecrets()
}
