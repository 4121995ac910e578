package delta

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/keys"
)

// told is what a goal about somebody says in words. Digests take its place in what is written down, and it stands beside
// them sealed: planners and functions are told it, and once its key is destroyed nobody is.
type told struct {
	Goal       string   `json:"goal,omitempty"`
	Storylines []string `json:"storylines,omitempty"`
}

func aboutGoal(agent, task string) string { return "goal\n" + agent + "\n" + task }

// sealGoal hides the words of a goal about somebody. The same goal is sealed alike: who delegates again asks for the same
// child.
func (e *Engine) sealGoal(ctx context.Context, s *engine.TaskState) error {
	words := told{Goal: s.Goal}
	if s.Brought != nil {
		words.Storylines = s.Brought.Storylines
	}
	if s.Subject == "" || words.Goal == "" && len(words.Storylines) == 0 {
		return nil
	}
	agent, space := vaultOf(s)
	data, err := e.dataKey(ctx, agent, space, true, s.Vault == "")
	if err != nil {
		return keyUnavailable(err)
	}
	text, err := json.Marshal(words)
	if err != nil {
		return err
	}
	s.Told = data.SealAlike(string(text), aboutGoal(s.Agent, s.ID))
	if s.Goal != "" {
		s.Goal = data.Digest(s.Goal)
	}
	if len(words.Storylines) > 0 {
		brought := *s.Brought
		brought.Storylines = slices.Clone(brought.Storylines)
		for i, line := range brought.Storylines {
			brought.Storylines[i] = data.Digest(line)
		}
		s.Brought = &brought
	}
	return nil
}

// toldOf returns the words of a task's goal as they were given; digests where there is no key.
func toldOf(s *engine.TaskState, data *keys.Data) told {
	written := told{Goal: s.Goal}
	if s.Brought != nil {
		written.Storylines = slices.Clone(s.Brought.Storylines)
	}
	if s.Told == "" || data == nil {
		return written
	}
	text, err := data.Open(s.Told, aboutGoal(s.Agent, s.ID))
	var words told
	if err != nil || json.Unmarshal([]byte(text), &words) != nil {
		return written
	}
	return words
}

// told returns the words of the task's goal.
func (t *Task) told(ctx context.Context, s *engine.TaskState) told {
	if s.Told == "" {
		return toldOf(s, nil)
	}
	v, err := t.vault(ctx, false)
	if err != nil { // its calls are refused as KEY_UNAVAILABLE
		t.engine.cfg.Log.Warn("the goal of a task cannot be opened", "task", t.ID(), "error", err)
		return toldOf(s, nil)
	}
	return toldOf(s, v.data)
}
