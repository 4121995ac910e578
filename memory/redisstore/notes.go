package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-ab2cfece/delta-agents/memory"
)

// note is a note as it is stored, behind its time.
type note struct {
	Tenant  string `json:"tenant,omitempty"`
	Task    string `json:"task,omitempty"`
	Intent  string `json:"intent,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Content string `json:"content"`
}

// Remember implements [memory.Store].
func (s *Store) Remember(ctx context.Context, agent string, n memory.Note) error {
	if agent == "" {
		return errors.New("remember: note without an agent")
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(note{n.Tenant, n.Task, n.Intent, n.Kind, n.Content})
	if err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	kept, err := redis.NewScript(s.run.remember.text).Run(ctx, s.client, []string{s.keys(agent).notes()}, text, s.notes).Int()
	switch {
	case err != nil:
		return s.done(ctx, "remember", err)
	case kept == 0:
		return fmt.Errorf("remember: agent %s has %d notes, the most that are kept: raise Config.Notes, or prune", agent, s.notes)
	}
	return nil
}

// recallPage is how many notes are read at a time, from the newest on.
const recallPage = 500

// Recall implements [memory.Store]. A note says whose it is, and all of an agent's stand in one list: the newest are looked
// for until there are enough, what is relevant among all.
func (s *Store) Recall(ctx context.Context, agent, tenant, query string, limit int) ([]memory.Note, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	key := s.keys(agent).notes()
	left, err := s.client.LLen(ctx, key).Result() // nothing is ever taken out: each keeps its place
	if err != nil {
		return nil, s.done(ctx, "recall", err)
	}
	var newest []memory.Note
	for ; left > 0 && (query != "" || len(newest) < limit); left -= recallPage {
		list, err := s.client.LRange(ctx, key, max(0, left-recallPage), left-1).Result()
		if err != nil {
			return nil, s.done(ctx, "recall", err)
		}
		for _, text := range slices.Backward(list) {
			n, err := readNote(text)
			if err != nil {
				return nil, err
			}
			if n.Tenant == tenant {
				newest = append(newest, n)
			}
		}
	}
	slices.Reverse(newest)
	return memory.Rank(newest, query, limit), nil
}

func readNote(text string) (memory.Note, error) {
	var n note
	var r reader
	if len(text) < digits {
		return memory.Note{}, fmt.Errorf("redis: recall: a note that another program wrote: %.40q", text)
	}
	if err := json.Unmarshal([]byte(text[digits:]), &n); err != nil {
		return memory.Note{}, fmt.Errorf("redis: recall: %w", err)
	}
	at := time.UnixMicro(r.number(text[:digits])).UTC()
	if r.err != nil {
		return memory.Note{}, fmt.Errorf("redis: recall: %w", r.err)
	}
	return memory.Note{Tenant: n.Tenant, Task: n.Task, Intent: n.Intent, Kind: n.Kind, Content: n.Content, At: at}, nil
}
