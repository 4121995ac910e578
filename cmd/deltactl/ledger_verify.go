package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

const verifyHelp = `Verify checks ledgers from the first record to the last: the form of every byte of an
export, the chain, the tree. With --heads also that each goes on from every head that
was kept of it, and that no ledger is missing of which there is one. What is wrong is
named with its line and record, and the exit code is 1. Of an agent's own ledger whose
beginning was pruned, heads of what is gone count where the checkpoint is signed by one
of the keys.

Columns: ledger, records, root (of the tree), kept (heads that it goes on from).

JSON: [{"ledger", "records", "root", "kept"}].` + sourceHelp

func newLedgerVerify() *cobra.Command {
	var f storeFlags
	var heads headFlags
	c := &cobra.Command{
		Use: "verify SOURCE...", Short: "Show that nothing was changed", Args: cobra.MinimumNArgs(1), Long: verifyHelp + storeHelp,
		Example: "  deltactl ledger verify t1.jsonl\n  deltactl ledger verify desk.jsonl --heads desk.heads --public audit.key.pub",
		RunE:    func(c *cobra.Command, args []string) error { return verify(c, &f, &heads, args) },
	}
	f.add(c)
	heads.add(c)
	return c
}

// vouched reports whether somebody whose signature counts vouches for what was pruned of a ledger.
func (f *headFlags) vouched(x *ledger.Exported, pruned error) error {
	e, err := ledger.CheckpointIn(x.Records)
	if err != nil || e == nil {
		return pruned
	}
	head, err := x.Base.Head(x.Agent, x.Task)
	if err != nil {
		return err
	}
	keys, err := f.keys()
	if err != nil {
		return err
	}
	if err := ledger.OpenCheckpoint(e.Text, head, e.State, keys...); err != nil {
		return fmt.Errorf("%w, and nobody whose signature counts vouches for them: %w", pruned, err)
	}
	return nil
}

type verified struct {
	Ledger  string      `json:"ledger"`
	Records int64       `json:"records"`
	Root    ledger.Hash `json:"root"`
	Kept    int         `json:"kept"`
}

func verify(c *cobra.Command, f *storeFlags, heads *headFlags, sources []string) error {
	kept, err := heads.read()
	if err != nil {
		return err
	}
	out := []verified{}
	for _, source := range sources {
		all, err := f.exported(c, source)
		if err != nil {
			return err
		}
		for _, x := range all {
			name := x.Head.Name()
			for _, h := range kept[name] {
				err := x.Log.Extends(h.Head)
				if errors.Is(err, ledger.ErrPruned) {
					err = heads.vouched(x, err)
				}
				if err != nil {
					return fmt.Errorf("%s, ledger %s: %w", source, name, err)
				}
			}
			out = append(out, verified{name, x.Head.Size, x.Head.Root, len(kept[name])})
			delete(kept, name)
		}
	}
	for _, name := range sorted(kept) {
		return fmt.Errorf("ledger %s is missing: a head of it was kept; give what was exported of it too, as prune --export does before it drops one", name)
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "ledger", "records", "root", "kept")
	for _, v := range out {
		t.Row(v.Ledger, v.Records, v.Root.String(), v.Kept)
	}
	return t.Flush()
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// proof is what prove writes and check reads.
type proof struct {
	Proof string        `json:"proof"` // record, growth
	Head  string        `json:"head"`  // of the ledger it was made from, signed where a key was given
	Older string        `json:"older,omitempty"`
	Path  []ledger.Hash `json:"path"`

	Prev  string          `json:"prev,omitempty"` // link of the record before
	Seq   int64           `json:"seq,omitempty"`
	At    int64           `json:"at,omitempty"`
	Event json.RawMessage `json:"event,omitempty"`
}

const proveHelp = `Prove makes a proof for somebody who holds no ledger: that a record is in it (--record),
or that it goes on from a head that was kept (--heads). The proof is one JSON document
with the present head, signed where --key is given; check checks it.` + sourceHelp

type proveFlags struct {
	storeFlags
	heads  headFlags
	name   string
	record int64
	key    string
}

func newLedgerProve() *cobra.Command {
	var f proveFlags
	c := &cobra.Command{
		Use: "prove SOURCE", Short: "Prove a record, or that nothing was rewritten", Args: cobra.ExactArgs(1), Long: proveHelp + storeHelp,
		Example: "  deltactl ledger prove t1.jsonl --record 17 --key audit.key > record.json\n  deltactl ledger prove t1.jsonl --heads t1.heads --public audit.key.pub --key audit.key > growth.json",
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	f.add(c)
	_ = c.Flags().MarkHidden("json") // a proof is JSON in any case
	f.heads.add(c)
	c.Flags().StringVar(&f.name, "ledger", "", "which ledger, where the file has several")
	c.Flags().Int64Var(&f.record, "record", 0, "number of the record to prove")
	c.Flags().StringVar(&f.key, "key", "", "file of the secret key that signs the present head")
	return c
}

func (f *proveFlags) run(c *cobra.Command, source string) error {
	kept, err := f.heads.read()
	if err != nil {
		return err
	}
	if (f.record == 0) == (kept == nil) {
		return usageError{errors.New("prove what? give either --record or --heads")}
	}
	all, err := f.exported(c, source)
	if err != nil {
		return err
	}
	x, err := one(all, f.name)
	if err != nil {
		return err
	}
	p := proof{Proof: "record", Head: x.Head.Text()}
	if f.key != "" {
		s, err := signer(f.key)
		if err != nil {
			return err
		}
		if p.Head, err = ledger.SignHead(x.Head, s); err != nil {
			return err
		}
	}
	if f.record != 0 {
		err = p.record(x, f.record)
	} else {
		err = p.growth(x, kept[x.Head.Name()])
	}
	if err != nil {
		return err
	}
	return printJSON(c.OutOrStdout(), p)
}

func (p *proof) record(x *ledger.Exported, seq int64) (err error) {
	r, prev, there := x.Record(seq)
	if p.Path, err = x.Log.ProveRecord(seq, x.Head.Size); err != nil {
		return coded{exitNotFound, err}
	}
	if !there {
		return coded{exitNotFound, fmt.Errorf("record %d: %w", seq, ledger.ErrPruned)}
	}
	p.Prev = prev
	p.Seq, p.At, p.Event = r.Seq, r.At, json.RawMessage(r.Val)
	return nil
}

// growth proves from the largest head that was kept.
func (p *proof) growth(x *ledger.Exported, kept []keptHead) error {
	if len(kept) == 0 {
		return coded{exitNotFound, fmt.Errorf("no head of %s was kept", x.Head.Name())}
	}
	older := slices.MaxFunc(kept, func(a, b keptHead) int { return int(a.Size - b.Size) })
	if err := x.Log.Extends(older.Head); err != nil {
		return err
	}
	p.Proof, p.Older = "growth", older.signed
	var err error
	p.Path, err = x.Log.ProveGrowth(older.Size, x.Head.Size)
	return err
}

func newLedgerCheck() *cobra.Command {
	var heads headFlags
	c := &cobra.Command{
		Use: "check PROOF", Short: "Check a proof without the ledger", Args: cobra.ExactArgs(1),
		Long: `Check checks a proof that prove made, with nothing but the proof, the public key of who
signs heads and, where they were kept, the heads: a proof of growth must then begin at
one of them. The present head must be signed by that key. What does not hold is
exit code 1.`,
		Example: "  deltactl ledger check growth.json --heads t1.heads --public audit.key.pub",
		RunE:    func(c *cobra.Command, args []string) error { return check(c, &heads, args[0]) },
	}
	heads.add(c)
	return c
}

func check(c *cobra.Command, heads *headFlags, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var p proof
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("%s is not a proof: %w", path, err)
	}
	keys, err := heads.keys()
	if err != nil {
		return err
	}
	kept, err := heads.read()
	if err != nil {
		return err
	}
	head, err := ledger.OpenHead(p.Head, keys...)
	if err != nil {
		return fmt.Errorf("%s: the present head: %w", path, err)
	}
	switch p.Proof {
	case "record":
		err = p.checkRecord(c, head)
	case "growth":
		err = p.checkGrowth(c, head, keys, kept)
	default:
		err = fmt.Errorf("there is no proof of kind %q", p.Proof)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (p *proof) checkRecord(c *cobra.Command, head ledger.Head) error {
	e, err := compactJSON(p.Event)
	if err != nil {
		return err
	}
	if err := ledger.CheckRecord(head, p.Prev, txn.Stored{Seq: p.Seq, At: p.At, Val: e}, p.Path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "Record %d is in the ledger %s of %d records.\n", p.Seq, head.Name(), head.Size)
	return err
}

func (p *proof) checkGrowth(c *cobra.Command, head ledger.Head, keys []string, kept map[string][]keptHead) error {
	older, err := ledger.OpenHead(p.Older, keys...)
	if err != nil {
		return fmt.Errorf("the older head: %w", err)
	}
	if kept != nil && !slices.ContainsFunc(kept[head.Name()], func(k keptHead) bool { return k.Head == older }) {
		return fmt.Errorf("it begins at a head of %d records that was not kept", older.Size)
	}
	if err := ledger.CheckGrowth(older, head, p.Path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "The ledger %s of %d records goes on from the one of %d: nothing was rewritten.\n", head.Name(), head.Size, older.Size)
	return err
}
