package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/examples/internal/held"
	"github.com/seed-ab2cfece/delta-agents/skills"
)

//go:embed skills
var embedded embed.FS

// story is one round of the housekeeper.
type story struct {
	out    io.Writer
	place  *place
	engine *delta.Engine
	task   *delta.Task
	person delta.Identity
}

// play tells it from the first listing to the verdict.
func play(ctx context.Context, p *place, at *held.Place, out io.Writer) (err error) {
	s := &story{out: out, place: p}
	if err := s.open(ctx, at); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.engine.Close(context.WithoutCancel(ctx))) }()
	for _, chapter := range []func(context.Context) error{s.blind, s.listed, s.tricks, s.asked, s.end} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) open(ctx context.Context, at *held.Place) error {
	list, remove, err := actions(s.place.house)
	if err != nil {
		return err
	}
	tell, err := delta.Communicate().Build()
	if err != nil {
		return err
	}
	keeper, err := delta.NewAgent("housekeeper").Role("keeps the house tidy").Grant(list, remove, tell).Build()
	if err != nil {
		return err
	}
	library, err := fs.Sub(embedded, "skills")
	if err != nil {
		return err
	}
	s.engine, err = delta.New(delta.Config{
		Store:         at.Store(),
		Skills:        skills.New(library),
		Channels:      map[string]delta.Channel{"household": delta.LogChannel(slog.New(slog.NewTextHandler(s.out, &slog.HandlerOptions{ReplaceAttr: textOnly})))},
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, credential any) (string, error) { return credential.(string), nil }),
	})
	if err != nil {
		return err
	}
	s.task, err = s.engine.Start(ctx, delta.Goal{
		ID: at.ID("tidy"), Agent: keeper, Text: "delete what is stale", Limit: action.Limit{Calls: action.Max(30)}, Approvers: []string{"ana"},
		Channels: []string{"household"}, Phase: "look",
	})
	if err != nil {
		return errors.Join(err, s.engine.Close(ctx))
	}
	s.person, err = s.engine.Authenticate(ctx, "ana")
	return err
}

// textOnly leaves of a log line what does not change from run to run.
func textOnly(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case "channel", "text":
		return a
	}
	return slog.Attr{}
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// try makes a call and tells what became of it.
func (s *story) try(ctx context.Context, name string, input any) (action.Outcome, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		return action.Outcome{}, err
	}
	out, err := s.task.Do(ctx, delta.Call{Action: name, Input: raw}).Get()
	if err != nil {
		return out, err
	}
	text := string(out.Output)
	if !out.OK() {
		text = out.Failure.Message
	}
	s.say("   %-11s %-46s %-17s %s", name, strings.ReplaceAll(string(raw), `"`, ""), out.Code, short(text))
	return out, nil
}

func short(text string) string {
	if r := []rune(text); len(r) > 110 {
		return string(r[:110]) + "…"
	}
	return text
}

// want is an error where a call did not end as it must.
func want(out action.Outcome, err error, code action.Code) error {
	if err == nil && out.Code != code {
		return fmt.Errorf("%s ended as %s, not as %s: %w", out.Action, out.Code, code, out.Err())
	}
	return err
}

func (s *story) blind(ctx context.Context) error {
	s.say("\n1. NOTHING IS LISTED YET\n   What nobody has looked at cannot be deleted; delete-file does not even exist for the agent.")
	o, err := s.task.Offer(ctx)
	if err != nil {
		return err
	}
	for _, a := range o.Actions {
		s.say("   offered: %s (%s)", a.Name, a.Status)
	}
	out, err := s.try(ctx, "delete-file", File{"logs/app-1.log", 1200})
	return want(out, err, action.NotLegal)
}

func (s *story) listed(ctx context.Context) error {
	s.say("\n2. WHAT A LISTING RETURNED CAN BE DELETED, ONCE")
	if err := s.task.SetPhase(ctx, "tidy", "the house was looked at"); err != nil {
		return err
	}
	for _, folder := range []string{"logs", "cache"} {
		out, err := s.try(ctx, "list-folder", Folder{folder})
		if err := want(out, err, action.OK); err != nil {
			return err
		}
		var l Listing
		if err := json.Unmarshal(out.Output, &l); err != nil {
			return err
		}
		for _, e := range l.Entries {
			if e.Days < 31 {
				continue
			}
			out, err := s.try(ctx, "delete-file", File{e.Path, e.Bytes})
			if err := want(out, err, action.OK); err != nil {
				return err
			}
		}
	}
	out, err := s.try(ctx, "delete-file", File{"logs/app-1.log", 1200})
	return want(out, err, action.NotLegal)
}

func (s *story) tricks(ctx context.Context) error {
	s.say("\n3. WAYS AROUND\n   A path outside, a folder nobody listed, a listing of what lies outside, and a lie about the size.")
	for _, f := range []File{{"../" + outside, 14}, {"backups/2024.tar", 3 << 20}, {"logs/../logs/today.log", 300}, {"logs/today.log", 299}} {
		out, err := s.try(ctx, "delete-file", f)
		if err := want(out, err, action.NotLegal); err != nil {
			return err
		}
	}
	out, err := s.try(ctx, "list-folder", Folder{".."})
	return want(out, err, action.Failed)
}

func (s *story) asked(ctx context.Context) error {
	s.say("\n4. BIG FILES ARE FOR A PERSON\n   From %d KiB on somebody is asked, for exactly this file.", big>>10)
	out, err := s.try(ctx, "list-folder", Folder{"backups"})
	if err := want(out, err, action.OK); err != nil {
		return err
	}
	kept, old := File{"backups/2025.tar", 2 << 20}, File{"backups/2024.tar", 3 << 20}
	out, err = s.try(ctx, "delete-file", kept)
	if err := want(out, err, action.ApprovalRequired); err != nil {
		return err
	}
	s.say("   ana rejects it: it is the newest")
	if err := s.engine.Reject(ctx, out.Failure.Approval(), s.person, "it is the newest"); err != nil {
		return err
	}
	out, err = s.try(ctx, "delete-file", kept)
	if err := want(out, err, action.ApprovalRejected); err != nil {
		return err
	}
	out, err = s.try(ctx, "delete-file", old)
	if err := want(out, err, action.ApprovalRequired); err != nil {
		return err
	}
	s.say("   ana approves it: there is a newer one")
	if err := s.engine.Approve(ctx, out.Failure.Approval(), s.person, "there is a newer one"); err != nil {
		return err
	}
	out, err = s.try(ctx, "delete-file", old)
	return want(out, err, action.OK)
}

func (s *story) end(ctx context.Context) error {
	s.say("\n5. WHAT IS LEFT")
	out, err := s.task.Communicate(ctx, "household", "4 files deleted, the backup of 2025 was kept").Get()
	if err := want(out, err, action.OK); err != nil {
		return err
	}
	left, err := s.place.left()
	if err != nil {
		return err
	}
	for _, name := range left {
		s.say("   %s", name)
	}
	if err := s.task.Conclude(ctx, action.Reached, "what is stale is gone"); err != nil {
		return err
	}
	c, _, err := s.task.Conclusion(ctx)
	if err != nil {
		return err
	}
	records, _, err := s.task.Ledger(ctx)
	if err != nil {
		return err
	}
	page, err := s.engine.History(ctx, delta.HistoryQuery{Task: s.task.ID(), Action: "delete-file"})
	if err != nil {
		return err
	}
	counts := map[action.Code]int{}
	for _, h := range page.Outcomes {
		counts[h.Code]++
	}
	s.say("   the goal was %s (%s): %s", c.Verdict, c.By, c.Reason)
	s.say("   deletes: %d done, %d not legal, %d times a person said no", counts[action.OK], counts[action.NotLegal], counts[action.ApprovalRejected])
	s.say("   the ledger of %d records verifies", len(records))
	return nil
}
