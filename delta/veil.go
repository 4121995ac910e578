package delta

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// veiled is a call that holds what must not be written down: its data key, and the secret words to be taken out of texts.
type veiled struct {
	*vault
	out   []string // secret paths in its output
	words []string // secret word and what stands for it, one after the other
	names []string // the same of names of members below a secret
	def   *declaration
	blind bool // it cannot be told what is secret
}

// withheld is said in place of words about what is secret.
const withheld = "the input does not fit; the words about it are withheld, because they may quote what is secret"

// minWord is the shortest secret that is looked for in texts: of shorter ones every text has some.
const minWord = 4

// veil hides what must not be written of a call that was observed. Most calls hold nothing of the kind.
func (t *Task) veil(ctx context.Context, o *observed, raw []byte, dry bool) {
	about, err := t.about(ctx)
	if err == nil && about != aboutSomebody && !t.agent.veils[o.def.name] {
		return
	}
	var v *vault
	if err == nil {
		v, err = t.vault(ctx, dry)
	}
	in := &o.call.Intent
	if err != nil {
		o.call.Barred = keyUnavailable(err)
		if f := o.call.Edge; f != nil { // it may say what is in the input
			o.call.Edge = action.Fail(f.Code, "the input of this call is not acceptable")
		}
		in.Input, in.Digest, in.Value, in.Provenance = action.Document{}, "", "", action.Provenance{}
		return
	}
	secrets, out := t.agent.secretsOf(o.def.name)
	w := &veiled{vault: v, out: out, def: o.def}
	o.veil = w
	if o.call.Edge != nil {
		w.refused(o, secrets, raw)
	} else {
		doc := in.Input
		w.learn(doc, secrets)
		in.Digest = w.sum("call", t.agent.name, t.local, o.def.name, o.def.version, o.def.in.Hash(), doc.Text())
		if in.Value != "" {
			in.Value = w.sum("input", o.def.name, in.Value)
		}
		key := w.data.Sum("fact")
		o.call.Veil = &engine.Veil{
			Input: w.shown(doc, secrets), Sealed: w.data.Seal(doc.Text(), aboutInput(t.agent.name, t.local, o.def.name, in.Digest)),
			Hash: statespace.Hash{Key: key[:], All: w.all},
		}
	}
	o.call.Barred = w.failure(o.call.Barred)
	for _, text := range []*string{&in.Provenance.Goal, &in.Provenance.Decision, &in.Provenance.PlanStep, &in.Provenance.Reason} {
		if *text = w.text(*text); *text != "" && (w.all || w.blind) {
			*text = w.data.Digest(*text)
		}
	}
}

// Where a text is sealed for: it cannot be opened for another place.
func aboutInput(agent, task, name, digest string) string {
	return strings.Join([]string{"input", agent, task, name, digest}, "\n")
}

func aboutOutput(agent, task, intent string) string {
	return strings.Join([]string{"output", agent, task, intent}, "\n")
}

func (w *veiled) sum(use string, parts ...string) string {
	h := w.data.Sum(use, parts...)
	return hex.EncodeToString(h[:])
}

// shown is what may be read of a document: of a task about somebody no more than that it is the same as another one.
func (w *veiled) shown(doc action.Document, secrets []string) action.Document {
	if w.all {
		text := strconv.Quote(w.data.Digest(doc.Text()))
		return action.NewDocument(text, text[1:len(text)-1])
	}
	if len(secrets) == 0 {
		return doc
	}
	return schema.Redact(doc, secrets, func(_, text string) string { return w.data.Digest(text) })
}

// told is what may be read of an output: one that repeats a secret of the input does not say so in its schema.
func (w *veiled) told(doc action.Document) action.Document {
	shown := w.shown(doc, w.out)
	text := w.text(shown.Text())
	if text == shown.Text() {
		return shown
	}
	clean, f := schema.Canonical(json.RawMessage(text), len(text))
	if f != nil { // a number was part of another
		text = strconv.Quote(w.data.Digest(doc.Text()))
		return action.NewDocument(text, text[1:len(text)-1])
	}
	return clean
}

// learn remembers the secret words of a document.
func (w *veiled) learn(doc action.Document, secrets []string) {
	if w.all {
		w.leaves(doc.Tree(), false)
		return
	}
	for _, path := range secrets {
		for _, text := range schema.Values(doc, path) {
			if value, f := schema.Canonical(text, len(text)); f == nil {
				w.leaves(value.Tree(), true)
			}
		}
	}
}

// leaves remembers the words of a value. Below a secret the names of members are secret with it.
func (w *veiled) leaves(v any, names bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if names {
				w.string(&w.names, name)
				w.string(&w.names, strings.NewReplacer("~", "~0", "/", "~1").Replace(name)) // as in a pointer
			}
			w.leaves(e, names)
		}
	case []any:
		for _, e := range v {
			w.leaves(e, names)
		}
	case string:
		w.string(&w.words, v)
	case json.Number:
		w.word(&w.words, v.String(), v.String())
	}
}

func (w *veiled) string(to *[]string, v string) {
	quoted, _ := json.Marshal(v) // a string: cannot fail
	w.word(to, v, string(quoted))
	for _, text := range []string{string(quoted[1 : len(quoted)-1]), strings.Trim(strconv.Quote(v), `"`), action.Visible(v)} {
		w.word(to, text, string(quoted))
	}
}

// brief reports whether a value holds a word that is too short to be looked for in texts.
func brief(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if len(name) < minWord || brief(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, brief)
	case string:
		return len(v) < minWord
	case json.Number:
		return len(v) < minWord
	}
	return false
}

// word has a text stand for itself no more. The longest come first: one may hold another.
func (w *veiled) word(to *[]string, word, value string) {
	if len(word) < minWord {
		return
	}
	all := *to
	for i := 0; i < len(all); i += 2 {
		if all[i] == word {
			return
		}
	}
	at := 0
	for at < len(all) && len(all[at]) >= len(word) {
		at += 2
	}
	*to = slices.Insert(all, at, word, w.data.Digest(value))
}

// text is a text without the secret words.
func (w *veiled) text(s string) string {
	if s == "" {
		return s
	}
	for i := 0; i < len(w.words); i += 2 {
		if strings.Contains(s, w.words[i]) {
			s = strings.ReplaceAll(s, w.words[i], w.words[i+1])
		}
	}
	return s
}

// said is text of what somebody says about a document: also without names of members that no schema declares.
func (w *veiled) said(s string, declared func() string) string {
	s = w.text(s)
	for i := 0; i < len(w.names); i += 2 {
		if name := w.names[i]; strings.Contains(s, name) && !strings.Contains(declared(), strconv.Quote(name)) {
			s = strings.ReplaceAll(s, name, w.names[i+1])
		}
	}
	return s
}

// declared is the text of the schemas of the call.
func (w *veiled) declared() (text string) {
	if d := w.def; d != nil && d.in != nil {
		text = string(d.in.JSON())
		if d.out != nil {
			text += string(d.out.JSON())
		}
	}
	return text
}

// failure is a failure without the secret words.
func (w *veiled) failure(f *action.Failure) *action.Failure {
	if w == nil || f == nil {
		return f
	}
	return w.failureOf(f, w.declared)
}

func (w *veiled) failureOf(f *action.Failure, declared func() string) *action.Failure {
	if len(w.words)+len(w.names) == 0 {
		return f
	}
	c := *f
	c.Message, c.Details = w.said(f.Message, declared), nil
	for name, text := range f.Details {
		f := (&action.Failure{Details: c.Details}).With(name, w.said(text, declared))
		c.Details = f.Details
	}
	return &c
}

// err is an error without the secret words, for what is written down.
func (w *veiled) err(err error) error {
	if w == nil || err == nil {
		return err
	}
	return errors.New(w.said(action.TextOf(err), w.declared))
}

// refused takes out of the words about an input that is not acceptable what they quote of it.
func (w *veiled) refused(o *observed, secrets []string, raw []byte) {
	f := o.call.Edge
	doc, bad := schema.Canonical(raw, len(raw)+1)
	if w.blind = bad != nil; !w.blind {
		w.learn(doc, secrets)
	}
	if w.blind || w.all { // nobody can tell what of it is secret
		o.call.Edge = action.Fail(f.Code, withheld)
		return
	}
	short := false // what is too short to be looked for may be quoted too
	for _, path := range secrets {
		for _, text := range schema.Values(doc, path) {
			value, bad := schema.Canonical(text, len(text)+1)
			short = short || bad != nil || brief(value.Tree())
		}
	}
	if short {
		o.call.Edge = action.Fail(f.Code, withheld).
			With(action.DetailField, untilSecret(f.Details[action.DetailField], secretPlaces(secrets)))
		return
	}
	o.call.Edge = w.failure(f)
}

// untilSecret is a JSON pointer as far as the first secret on its way: below it names are secret too.
func untilSecret(pointer string, secrets places) string {
	parts := strings.Split(pointer, "/")
	at := make([]string, 0, len(parts))
	for _, part := range parts[1:] {
		at = append(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		if secrets.covers(at) {
			break
		}
	}
	return strings.Join(parts[:len(at)+1], "/")
}

// end hides what must not be written of the end of a call.
func (f *flight) hidden(end engine.End) engine.End {
	w := f.veil
	if w == nil {
		return end
	}
	if end.Code == action.OK && end.Sealed == "" {
		w.learn(end.Output, w.out)
		if end.Shown = w.told(end.Output); end.Shown.Text() != end.Output.Text() {
			end.Sealed = w.data.Seal(end.Output.Text(), aboutOutput(f.t.agent.name, f.t.local, f.intent))
		}
	}
	end.Failure = w.failure(end.Failure)
	return end
}

// plain is the outcome as the caller gets it.
func (f *flight) plain(out action.Outcome, end engine.End) action.Outcome {
	if out.Sealed != "" {
		out.Sealed, out.Output = "", json.RawMessage(strings.Clone(end.Output.Text()))
	}
	return out
}

// unveil opens the output of a recorded outcome. One that cannot be opened stays sealed.
func (t *Task) unveil(ctx context.Context, out action.Outcome) action.Outcome {
	if out.Sealed == "" {
		return out
	}
	text, err := t.open(ctx, out.Sealed, aboutOutput(t.agent.name, t.local, out.Intent))
	if err != nil {
		t.engine.cfg.Log.Warn("a recorded output cannot be opened", "task", t.ID(), "intent", out.Intent, "error", err)
		return out
	}
	out.Output, out.Sealed = json.RawMessage(text), ""
	return out
}

// open opens a text that was sealed in the task.
func (t *Task) open(ctx context.Context, sealed, about string) (string, error) {
	v, err := t.vault(ctx, false)
	if err != nil {
		return "", err
	}
	text, err := v.data.Open(sealed, about)
	if err != nil && !strings.HasPrefix(sealed, v.data.ID()+".") {
		return "", ErrErased // another key has taken the place of the one that it was sealed under
	}
	return text, err
}

// inputOf is the exact input of a recorded call.
func (t *Task) inputOf(ctx context.Context, e *ledger.Event) (json.RawMessage, error) {
	if e.Sealed == "" {
		return e.Input, nil
	}
	text, err := t.open(ctx, e.Sealed, aboutInput(e.Agent, e.Task, e.Action, e.Digest))
	return json.RawMessage(text), err
}

// outputOf is the exact output of a recorded call.
func (t *Task) outputOf(ctx context.Context, e *ledger.Event) (json.RawMessage, error) {
	if e.Sealed == "" {
		return e.Output, nil
	}
	text, err := t.open(ctx, e.Sealed, aboutOutput(e.Agent, e.Task, e.Intent))
	return json.RawMessage(text), err
}

// resolution is what an operator found of a call, as it may be written down, and what facts rest on.
func (t *Task) resolution(ctx context.Context, begun *ledger.Event, out action.Document) (found engine.End, run engine.Run, err error) {
	found.Output = out
	if begun.Sealed == "" {
		return found, run, nil
	}
	v, err := t.vault(ctx, false)
	if err != nil {
		return found, run, err
	}
	input, err := t.inputOf(ctx, begun)
	if err != nil {
		return found, run, err
	}
	doc, f := schema.Canonical(input, 0)
	if f != nil {
		return found, run, f
	}
	taken, secrets := t.agent.secretsOf(begun.Action)
	w, key := &veiled{vault: v, out: secrets}, v.data.Sum("fact")
	run.Input, run.Veil = doc.Tree(), &engine.Veil{Hash: statespace.Hash{Key: key[:], All: v.all}}
	w.learn(doc, taken)
	w.learn(out, secrets)
	if found.Shown = w.told(out); !out.IsZero() && found.Shown.Text() != out.Text() {
		found.Sealed = v.data.Seal(out.Text(), aboutOutput(begun.Agent, begun.Task, begun.Intent))
	}
	return found, run, nil
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

// markVeiled notes which actions take or give something secret, or rest on facts that hold some.
func (a *Agent) markVeiled() {
	for name := range a.defs {
		if in, out := a.secretsOf(name); len(in)+len(out) > 0 || a.compiled.Graph.Hashes(name) {
			if a.veils == nil {
				a.veils = map[string]bool{}
			}
			a.veils[name] = true
		}
	}
}
