package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// open begins a conversation with what the task brings along and what the agent remembers of it.
func (t *talk) open(ctx context.Context, m Model, r delta.Request, now string) error {
	number, err := t.cfg.number()
	if err != nil {
		return err
	}
	var parts []string
	if len(r.Storylines) > 0 {
		parts = append(parts, "Storylines:\n- "+strings.Join(r.Storylines, "\n- "))
	}
	if len(r.Channels) > 0 {
		parts = append(parts, "Channels for messages: "+strings.Join(r.Channels, ", ")+".")
	}
	media, files := t.attach(ctx, m, r, number)
	parts = append(parts, files...)
	if notes := t.recall(ctx, r, number); notes != "" {
		parts = append(parts, notes)
	}
	t.opening = Message{Media: media, Text: strings.Join(append(parts, now), "\n\n")}
	return nil
}

// recall is what the agent noted earlier, as far as it is about the goal. Functions wrote it, so it is fenced.
func (t *talk) recall(ctx context.Context, r delta.Request, number string) string {
	notes, err := r.Recall(ctx, r.Goal)
	if err != nil || len(notes) == 0 {
		return "" // what cannot be recalled now is not needed to act
	}
	var told []map[string]string
	for _, n := range notes {
		told = append(told, map[string]string{"at": n.At.UTC().Format("2006-01-02T15:04:05Z"), "kind": n.Kind, "note": n.Content})
	}
	b, err := json.Marshal(told)
	if err != nil {
		return ""
	}
	return "Notes of earlier work:\n" + Fence(number, "notes", string(b), t.cfg.ResultBytes)
}

// attach shows the attachments: images and sounds where the model takes them, text as text, the rest by name only. All of
// it is data of the task, and not trusted.
func (t *talk) attach(ctx context.Context, m Model, r delta.Request, number string) (media []Media, parts []string) {
	taker, _ := m.(Taker)
	room := t.cfg.Window // bytes, some third of the context
	for _, a := range r.Attachments {
		line := fmt.Sprintf("Attachment %s: %s, %d bytes.", a.ID, a.Type, a.Size)
		if a.Name != "" {
			line += " Name: " + quoted(a.Name)
		}
		takes := taker != nil && a.Kind() != action.KindFile && taker.Takes(a.Type)
		if !takes && !isText(a.Type) {
			parts = append(parts, line+" Its content cannot be shown to you; actions may use it by its id.")
			continue
		}
		full, err := r.Attachment(ctx, a.ID)
		switch {
		case err != nil:
			line += " It cannot be read now."
		case takes:
			media = append(media, Media{ID: a.ID, Type: a.Type, Data: full.Data})
		case room < leastBody:
			line += " There is no room left to show it; actions may use it by its id."
		default:
			most := min(room, t.cfg.ResultBytes)
			room -= min(most, len(full.Data))
			line += "\n" + Fence(number, a.ID, string(full.Data), most)
		}
		parts = append(parts, line)
	}
	return media, parts
}

// isText reports whether a media type is text that a model can read.
func isText(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	switch kind {
	case "application/json", "application/xml", "application/yaml", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

// ownTools are the planner's own: finish, and where the task has skills one that reads them. Skills are the operator's
// instructions, so what they say is not fenced.
func (t *talk) ownTools(r delta.Request) []Tool {
	t.skill = nil
	if len(r.Skills) == 0 {
		return []Tool{finishing}
	}
	t.skill = func(name, file string) (string, error) {
		if file != "" {
			b, err := r.SkillFile(name, file)
			return string(b), err
		}
		s, err := r.Skill(name)
		return s.Body, err
	}
	text := "Read how something is done well, before you do it. The skills are:"
	list := make([]string, len(r.Skills))
	for i, s := range r.Skills {
		text += "\n- " + s.Name + ": " + s.Description
		list[i] = s.Name
	}
	schema := encode(map[string]any{
		"type": "object", "required": []string{"name"}, "additionalProperties": false,
		"properties": map[string]any{
			"name": map[string]any{"type": "string", "enum": list},
			"file": map[string]any{"type": "string", "description": "another file of the skill, as its text names it; leave it out for the skill itself"},
		},
	})
	return []Tool{finishing, {Name: skillTool, Description: text, Schema: json.RawMessage(schema)}}
}

// readSkill answers a call of the skill tool, and reports whether that is what the model wanted.
func (t *talk) readSkill(arguments string) (string, bool) {
	var in struct{ Name, File string }
	if err := json.Unmarshal([]byte(arguments), &in); err != nil || in.Name == "" {
		return "Not read: send {\"name\": …}, with the name of a skill.", false
	}
	text, err := t.skill(in.Name, in.File)
	if err != nil {
		return "Not read: " + quoted(err.Error()), false
	}
	if strings.TrimSpace(text) == "" {
		text = "(it is empty)"
	}
	return text, true
}

// answered reports whether the assistant's last message has calls that the planner answers itself.
func (t *talk) answered() bool {
	if t.said == nil {
		return false
	}
	for _, m := range t.said.calls {
		if m.id == "" && m.echo.Name == skillTool {
			return true
		}
	}
	return false
}
