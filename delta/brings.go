package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/skills"
)

// Bounds of what a goal tells beside its text.
const (
	MaxStorylines = 16 // of one goal, each cut to action.MaxText
	maxNamed      = 64 // skills or channels that one goal, agent or action names
)

// bring checks what a goal brings along and returns what is recorded of it, nil where it brings nothing.
func (e *Engine) bring(g *Goal) (*engine.Brought, []error) {
	b := &engine.Brought{Phase: g.Phase, Skills: slices.Clone(g.Skills), Channels: slices.Clone(g.Channels)}
	var faults []error
	if g.Phase != "" {
		if err := action.CheckName(g.Phase); err != nil {
			faults = append(faults, fmt.Errorf("goal phase: %w", err))
		}
	}
	if len(g.Storylines) > MaxStorylines {
		faults = append(faults, fmt.Errorf("goal storylines: %d, at most %d are told", len(g.Storylines), MaxStorylines))
	}
	for _, s := range g.Storylines {
		b.Storylines = append(b.Storylines, action.Cut(s))
	}
	var more []error
	b.Attachments, more = e.attachable(g.Attachments)
	faults = append(faults, more...)
	g.Context = slices.Clone(g.Context)
	for _, a := range b.Attachments {
		if !slices.Contains(g.Context, a.ID) {
			g.Context = append(g.Context, a.ID)
		}
	}
	faults = append(faults, e.skillsExist("goal", b.Skills)...)
	faults = append(faults, e.channelsExist(b.Channels)...)
	if b.IsZero() {
		b = nil
	}
	return b, faults
}

// skillsExist reports skills that are named and cannot be listed.
func (e *Engine) skillsExist(who string, names []string) (faults []error) {
	if len(names) > maxNamed {
		return []error{fmt.Errorf("%s names %d skills, at most %d are read", who, len(names), maxNamed)}
	}
	for _, name := range names {
		if e.cfg.Skills == nil {
			return append(faults, fmt.Errorf("%s: skill %q: the engine knows no skills; set Config.Skills to skills.Open(folder)", who, name))
		}
		if _, err := e.cfg.Skills.Info(name); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", who, err))
		}
	}
	return faults
}

// skillsOf reports what an agent and its actions name and nobody can read.
func (e *Engine) skillsOf(a *Agent) (faults []error) {
	faults = e.skillsExist(fmt.Sprintf("agent %q", a.name), a.skills)
	for _, name := range a.Actions() {
		faults = append(faults, e.skillsExist(fmt.Sprintf("agent %q: action %q", a.name, name), a.defs[name].skills)...)
	}
	return faults
}

// Skills names skills for all that the agent does: its planner and its functions may read them, see [Config].Skills.
func (b AgentBuilder) Skills(names ...string) AgentBuilder {
	b.skills = append(slices.Clip(b.skills), names...)
	return b
}

// Skills names skills that say how the action is used well: its function may read them, and the planner while the action is
// offered. See [Config].Skills.
func (b Builder[In, Out]) Skills(names ...string) Builder[In, Out] {
	b.d.skills = append(slices.Clip(b.d.skills), names...)
	return b
}

func (d *declaration) checkSkills() {
	for _, name := range d.skills {
		if err := skills.CheckName(name); err != nil {
			d.fault("skills: %w", err)
		}
	}
}

// given is what a planner or a function may read of what its task, agent and action bring along.
type given struct {
	e      *Engine
	t      *Task
	agent  string
	task   *engine.Brought // nil where it brings nothing
	skills []string
}

// give gathers it; actions are those whose own skills count.
func (t *Task) give(task *engine.Brought, actions ...string) *given {
	g := &given{e: t.engine, t: t, agent: t.agent.name, task: task, skills: slices.Clone(t.agent.skills)}
	if task != nil {
		g.skills = append(g.skills, task.Skills...)
	}
	for _, name := range actions {
		if d := t.agent.defs[name]; d != nil {
			g.skills = append(g.skills, d.skills...)
		}
	}
	slices.Sort(g.skills)
	g.skills = slices.Compact(g.skills)
	return g
}

// errNotGiven answers a request that no run made.
var errNotGiven = errors.New("nothing is brought along here: the request was not made by a run")

func (g *given) attachments() []action.AttachmentInfo {
	if g == nil || g.task == nil {
		return nil
	}
	return slices.Clone(g.task.Attachments)
}

func (g *given) attachment(ctx context.Context, id string) (Attachment, error) {
	if g == nil {
		return Attachment{}, errNotGiven
	}
	info, ok := g.task.Attachment(id)
	if !ok {
		return Attachment{}, fmt.Errorf("there is no attachment %q; the task has %q", action.CutTo(id, action.MaxName), ids(g.attachments()))
	}
	return g.t.attachment(ctx, info)
}

func ids(as []action.AttachmentInfo) []string {
	out := make([]string, len(as))
	for i, a := range as {
		out[i] = a.ID
	}
	return out
}

// infos lists the skills. One that became unreadable meanwhile is left out, and reading it says why.
func (g *given) infos() (out []skills.Info) {
	if g == nil {
		return nil
	}
	for _, name := range g.skills {
		info, err := g.e.cfg.Skills.Info(name)
		if err != nil {
			g.e.cfg.Log.Warn("skill not listed", "agent", g.agent, "skill", name, "error", err)
			continue
		}
		out = append(out, info)
	}
	return out
}

func (g *given) named(skill string) error {
	switch {
	case g == nil:
		return errNotGiven
	case !slices.Contains(g.skills, skill):
		return fmt.Errorf("skill %q is not given here; there are %q", action.CutTo(skill, action.MaxName), g.skills)
	}
	return nil
}

func (g *given) skill(name string) (skills.Skill, error) {
	if err := g.named(name); err != nil {
		return skills.Skill{}, err
	}
	return g.e.cfg.Skills.Read(name)
}

func (g *given) skillFile(name, file string) ([]byte, error) {
	if err := g.named(name); err != nil {
		return nil, err
	}
	return g.e.cfg.Skills.ReadFile(name, file)
}

func (g *given) recall(ctx context.Context, query string) ([]memory.Note, error) {
	if g == nil {
		return nil, errNotGiven
	}
	if err := alive(ctx); err != nil {
		return nil, err
	}
	return g.t.recall(ctx, query)
}

// give is what the function of a call may read.
func (c *Context) give() *given { return c.flight.t.give(c.brought, c.begun.Action) }

// Phase returns the phase the task was in when the attempt started, "" for none.
func (c *Context) Phase() string {
	if c.brought == nil {
		return ""
	}
	return c.brought.Phase
}

// Storylines returns the task's storylines.
func (c *Context) Storylines() []string {
	return slices.Clone(c.storylines)
}

// Attachments returns what the task brings along, without the content.
func (c *Context) Attachments() []action.AttachmentInfo { return c.give().attachments() }

// Attachment reads an attachment of the task by its id. It is an error where there is none, or where its content is not
// what the task was given.
func (c *Context) Attachment(id string) (Attachment, error) {
	if err := c.mayAct(); err != nil {
		return Attachment{}, fmt.Errorf("attachment: %w", err)
	}
	return c.give().attachment(c, id)
}

// Skills lists the skills of the agent, the task and this action, in order of names.
func (c *Context) Skills() []skills.Info {
	if c.mayAct() != nil {
		return nil
	}
	return c.give().infos()
}

// Skill reads one of them by its name.
func (c *Context) Skill(name string) (skills.Skill, error) {
	if err := c.mayAct(); err != nil {
		return skills.Skill{}, fmt.Errorf("skill: %w", err)
	}
	return c.give().skill(name)
}

// SkillFile reads another file of one of them, see [skills.Library.ReadFile].
func (c *Context) SkillFile(skill, file string) ([]byte, error) {
	if err := c.mayAct(); err != nil {
		return nil, fmt.Errorf("skill: %w", err)
	}
	return c.give().skillFile(skill, file)
}

// Attachment reads an attachment by its id, see Attachments.
func (r Request) Attachment(ctx context.Context, id string) (Attachment, error) {
	return r.given.attachment(ctx, id)
}

// Skill reads a skill by its name, see Skills.
func (r Request) Skill(name string) (skills.Skill, error) { return r.given.skill(name) }

// SkillFile reads another file of a skill, see [skills.Library.ReadFile].
func (r Request) SkillFile(skill, file string) ([]byte, error) {
	return r.given.skillFile(skill, file)
}

// Recall returns the agent's notes most relevant to the query, best first; an empty query returns the newest. It is what
// functions get from [Context.Recall].
func (r Request) Recall(ctx context.Context, query string) ([]memory.Note, error) {
	return r.given.recall(ctx, query)
}

// bring fills in what the task brings along.
func (r *Request) bring(t *Task, task *engine.Brought) {
	names := make([]string, len(r.Offer.Actions))
	for i, o := range r.Offer.Actions {
		names[i] = o.Name
	}
	r.given = t.give(task, names...)
	r.Skills, r.Attachments = r.given.infos(), r.given.attachments()
	if task != nil {
		r.Phase, r.Channels = task.Phase, slices.Clone(task.Channels)
	}
}
