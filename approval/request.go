package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Request is what a person is asked to consent to, as it was shown. It is kept as the value of the approval's token.
type Request struct {
	ID        string          `json:"id"`
	Agent     string          `json:"agent"`
	Task      string          `json:"task"`
	Intent    string          `json:"intent"`
	Action    string          `json:"action"`
	Version   string          `json:"version"` // of the action
	Digest    string          `json:"digest"`
	Input     json.RawMessage `json:"input,omitempty"` // canonical form; absent where it is sealed elsewhere
	Value     string          `json:"value,omitempty"` // names the input as the function sees it, however it was spelt
	Why       []string        `json:"why,omitempty"`   // why a person is asked
	Risk      Risk            `json:"risk"`
	Policy    string          `json:"policy,omitempty"` // version of the policy that permitted it
	Forecast  action.Cost     `json:"forecast,omitzero"`
	Requester string          `json:"requester,omitempty"` // the identity on whose behalf the task runs
	Asked     int64           `json:"asked"`               // store time, µs
	Expires   int64           `json:"expires,omitempty"`   // store time, µs; 0 never
	Decision  *Decision       `json:"decision,omitempty"`  // nil while pending
	Quorum    *Quorum         `json:"quorum,omitempty"`    // how many must consent, nil for one approver
	Schema    string          `json:"schema,omitempty"`    // hash of the declared input schema
	Permit    string          `json:"permit,omitempty"`    // why the policy permits it
	Effect    action.Effect   `json:"effect,omitempty"`    // side-effect class
	UndoneBy  string          `json:"undone_by,omitempty"` // the action that is declared to undo it, "" where none is
	Parts     []Part          `json:"parts,omitempty"`     // what the estimated risk rests on
	Priced    action.Limit    `json:"priced,omitzero"`     // what of the forecast is no forecast: its input says what it costs
}

// Part is what one part of what is known adds to the log-odds of Err: above 0 it raises the risk.
type Part struct {
	Name string  `json:"name"` // "declared", "agent", a tag, "action", …
	Adds float64 `json:"adds"`
	SD   float64 `json:"sd,omitempty"` // standard deviation of the part by itself
}

// Risk is the risk as the person was shown it: a consent covers no higher one.
type Risk struct {
	Declared  int     `json:"declared"`        // 1 to 5
	Score     float64 `json:"score"`           // estimated from outcomes, 1 to 5
	Floor     float64 `json:"floor,omitempty"` // what the action's own record alone says at least, 1 to 5
	Effective float64 `json:"effective"`       // what gated, 1 to 5
	P         float64 `json:"p"`               // mean probability of Err, 0 to 1
	Lo        float64 `json:"lo"`              // credible interval of P
	Hi        float64 `json:"hi"`              //
	N         int64   `json:"n"`               // outcomes it rests on
	Rule      string  `json:"rule,omitempty"`  // the per-argument rule that raised it
}

// Decision is a person's answer.
type Decision struct {
	Identity string `json:"identity"`
	Reason   string `json:"reason,omitempty"`
	At       int64  `json:"at"` // worker time, µs
}

// Decided returns a copy of r that carries the answer.
func (r Request) Decided(d Decision) Request {
	r.Decision = &d
	return r
}

// Encode returns r as JSON, for the value of a token.
func (r Request) Encode() (string, error) { return encode("request", r) }

// DecodeRequest reads what Encode wrote; an unknown field is an error.
func DecodeRequest(text string) (r Request, err error) {
	err = decode("request", text, &r)
	return r, err
}

// Encode returns d as JSON.
func (d Decision) Encode() (string, error) { return encode("decision", d) }

// DecodeDecision reads what Encode wrote; an unknown field is an error.
func DecodeDecision(text string) (d Decision, err error) {
	err = decode("decision", text, &d)
	return d, err
}

func encode(what string, v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("encode approval %s: %w", what, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func decode(what, text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("decode approval %s: %w", what, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("decode approval %s: data behind it", what)
	}
	return nil
}
