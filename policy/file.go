package policy

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// document is a file of rules, see [ParseSources].
type document struct {
	Version  string              `json:"version"`
	Include  []string            `json:"include"`
	Policies string              `json:"policies"`
	Grants   []Grant             `json:"grants"`
	Actions  map[string]typed    `json:"actions"`
	Teams    map[string][]string `json:"teams"`
	Toolsets map[string][]string `json:"toolsets"`
	Autonomy map[string]Autonomy `json:"autonomy"`
}

// typed is an ActionType as a file declares it.
type typed struct {
	Tool   string         `json:"tool"`
	Source string         `json:"source"`
	Groups []string       `json:"groups"`
	Input  jsontext.Value `json:"input"`
}

const maxDocument = 8 << 20 // bytes

// ParseSources reads a file of rules in JSON:
//
//	{
//	  "version":  "2026-11",                     begins the version that is recorded
//	  "include":  ["desk.cedar"],                files of Cedar policies, for whoever reads files
//	  "policies": "permit (principal, …);",      Cedar policies in place
//	  "grants":   [{"name": "cover", "agent": "mia", "actions": ["refund"], "tools": ["stripe"],
//	                "until": "2027-01-02T00:00:00Z", "when": "context.input.amount <= 50"}],
//	  "actions":  {"refund": {"tool": "stripe", "groups": ["payments"], "input": {JSON schema}}},
//	  "teams":    {"desk": ["mia"]},
//	  "toolsets": {"money": ["stripe"]},
//	  "autonomy": {"mia": "act-on-gated"}
//	}
//
// It is strict: unknown names, names given twice, names in another case, invalid UTF-8, what follows the document and values
// of another type are errors. Name is for messages. The names of the files to include are returned as they stand.
func ParseSources(name string, text []byte) (s Sources, include []string, err error) {
	if len(text) > maxDocument {
		return s, nil, fmt.Errorf("%s is larger than %d bytes", name, maxDocument)
	}
	if err := noNull(text); err != nil {
		return s, nil, fmt.Errorf("%s: %w", name, err)
	}
	var d document
	if err := json.Unmarshal(text, &d, json.RejectUnknownMembers(true)); err != nil {
		return s, nil, fmt.Errorf("%s: %s", name, fault(err))
	}
	for i, g := range d.Grants {
		if g.Actions == nil {
			return s, nil, fmt.Errorf("%s: /grants/%d: it does not say which actions", name, i)
		}
	}
	s = Sources{Label: d.Version, Grants: d.Grants, Teams: d.Teams, Toolsets: d.Toolsets, Autonomy: d.Autonomy}
	if d.Policies != "" {
		s.Policies = []File{{Name: name, Text: []byte(d.Policies)}}
	}
	if d.Actions != nil {
		s.Actions = map[string]ActionType{}
	}
	for n, a := range d.Actions {
		s.Actions[n] = ActionType{Tool: a.Tool, Source: a.Source, Groups: a.Groups, Input: []byte(a.Input)}
	}
	return s, d.Include, nil
}

// noNull refuses null, which is how a list that was forgotten looks in YAML: not saying and saying none are different.
func noNull(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		t, err := d.ReadToken()
		switch {
		case err != nil:
			return nil // what is wrong is told by who reads the values
		case t.Kind() == jsontext.KindNull && !schemaAt.MatchString(string(d.StackPointer())):
			return fmt.Errorf("%s: it has no value: leave it out, or say what it is", d.StackPointer())
		}
	}
}

// schemaAt is where a JSON schema is, in which null has a meaning.
var schemaAt = regexp.MustCompile(`^/actions/[^/]*/input/`)

// fault says where and what is wrong, in few words, and what was probably meant.
func fault(err error) string {
	var sem *json.SemanticError
	if !errors.As(err, &sem) {
		return strings.TrimPrefix(err.Error(), "jsontext: ")
	}
	where := string(sem.JSONPointer)
	if where == "" {
		where = "the document"
	}
	if errors.Is(err, json.ErrUnknownName) {
		at := strings.LastIndexByte(where, '/')
		name := where[at+1:]
		msg := fmt.Sprintf("%s: there is no key %q here", where[:at+1], name)
		if meant := nearest(name, known(where[:max(at, 0)])); meant != "" {
			msg += fmt.Sprintf("; did you mean %q?", meant)
		}
		return msg
	}
	if sem.Err != nil {
		return where + ": " + sem.Err.Error()
	}
	return fmt.Sprintf("%s: a value of type %v is not what belongs here", where, sem.JSONKind)
}

// nearest returns the key that is most like a name, "" where none is like it.
func nearest(name string, keys []string) string {
	best, least := "", 1+min(len(name), action.MaxName)/3
	if len(name) > action.MaxName {
		return ""
	}
	for _, k := range keys {
		if d := action.Distance(strings.ToLower(name), k); d <= least {
			best, least = k, d-1
		}
	}
	return best
}

// known returns the keys that an object at this place may have.
func known(where string) []string {
	switch parts := strings.Split(where, "/"); {
	case where == "":
		return []string{"version", "include", "policies", "grants", "actions", "teams", "toolsets", "autonomy"}
	case parts[1] == "grants":
		return []string{"name", "agent", "actions", "tools", "until", "when"}
	case parts[1] == "actions":
		return []string{"tool", "source", "groups", "input"}
	}
	return nil
}
