package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

func newLedgerKeygen() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "keygen NAME", Short: "Make a pair of keys for signing heads", Args: cobra.ExactArgs(1),
		Long: `Keygen makes a pair of Ed25519 keys: the secret one, which signs heads, goes into --out,
readable by you alone; the public one, which checks them, into the same name with
.pub, and is printed. NAME says whose they are, audit.example.org say. Files that are
there are not replaced. Keep the secret key where the store is not.`,
		Example: "  deltactl ledger keygen audit.example.org --out audit.key",
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return usageError{errors.New("where to? give --out FILE")}
			}
			secret, public, err := ledger.NewKey(rand.Reader, args[0])
			if err != nil {
				return usageError{err}
			}
			if err := writeNew(out, secret+"\n", 0o600); err != nil {
				return err
			}
			if err := writeNew(out+".pub", public+"\n", 0o644); err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), public)
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "file of the secret key (required)")
	return c
}

func writeNew(path, text string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

const exportHelp = `Export verifies ledgers of the store and writes them as JSON lines, fixed to the byte:
a line that names the ledger, one for each record, one that closes it. NAME is a task
(agent~task) or an agent, for the agent's own ledger; with --tasks also the ledgers of
all the agent's tasks that the store lists.

With --key the head of each ledger is signed and appended to --heads, where it is not
there yet. Keep heads where
whoever runs the store cannot write: with them verify and prove show that nothing was
rewritten since.

An export holds all that the ledger holds, inputs and outputs of calls included.`

type exportFlags struct {
	storeFlags
	out, key, heads string
	tasks           bool
}

func newLedgerExport() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use: "export NAME...", Short: "Write ledgers as files that show every change", Args: cobra.MinimumNArgs(1), Long: exportHelp + storeHelp,
		Example: "  deltactl ledger export desk~t1 > t1.jsonl\n  deltactl ledger export desk --tasks --out desk.jsonl --key audit.key --heads desk.heads",
		PreRunE: func(*cobra.Command, []string) error {
			if (f.key == "") != (f.heads == "") {
				return usageError{errors.New("--key and --heads go together")}
			}
			return nil
		},
		RunE: onDesk(&f.storeFlags, func(c *cobra.Command, d *desk, args []string) error { return f.run(c, d, args) }),
	}
	f.add(c)
	_ = c.Flags().MarkHidden("json") // an export is JSON lines in any case
	c.Flags().StringVar(&f.out, "out", "", "new file to write; standard output if not given")
	c.Flags().StringVar(&f.key, "key", "", "file of the secret key that signs the heads")
	c.Flags().StringVar(&f.heads, "heads", "", "file to append the signed heads to")
	c.Flags().BoolVar(&f.tasks, "tasks", false, "of an agent, its tasks' ledgers too")
	return c
}

func (f *exportFlags) run(c *cobra.Command, d *desk, args []string) (err error) {
	var signers []ledger.Signer
	if f.key != "" {
		s, err := signer(f.key)
		if err != nil {
			return err
		}
		signers = append(signers, s)
	}
	names, err := f.names(c, d, args)
	if err != nil {
		return err
	}
	w := c.OutOrStdout()
	if f.out != "" {
		file, fault := f.file()
		if fault != nil {
			return fault
		}
		defer func() { err = errors.Join(err, f.closed(file, err)) }()
		w = file
	}
	bar := &progress{w: c.ErrOrStderr()}
	defer bar.done()
	for i, name := range names {
		if err := f.one(c, d, w, name, signers); err != nil {
			return err
		}
		if len(names) > 1 {
			bar.step("ledgers", int64(i), int64(len(names)))
		}
	}
	return nil
}

// file opens --out: a new file, or what is no file that could hold anything, such as a pipe. An export that is there may be
// the only one of a ledger that was pruned since.
func (f *exportFlags) file() (*os.File, error) {
	if info, err := os.Stat(f.out); err == nil && !info.Mode().IsRegular() {
		return os.OpenFile(f.out, os.O_WRONLY, 0)
	}
	file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("--out %s: it is there, and what was exported is not replaced; name another file, or move it away", f.out)
	}
	return file, err
}

// closed ends a file that was opened: half an export does not keep the next one from its name.
func (f *exportFlags) closed(file *os.File, failed error) error {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, file.Close())
	}
	err = errors.Join(file.Sync(), file.Close())
	if failed != nil {
		err = errors.Join(err, os.Remove(f.out))
	}
	return err
}

func (f *exportFlags) one(c *cobra.Command, d *desk, w io.Writer, name string, signers []ledger.Signer) error {
	h, err := d.export(c.Context(), w, name)
	if err != nil || len(signers) == 0 {
		return err
	}
	signed, err := ledger.SignHead(h, signers...)
	if err != nil {
		return err
	}
	kept, err := f.keeps(signed)
	if kept || err != nil {
		return err
	}
	file, err := os.OpenFile(f.heads, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(signed)
	return errors.Join(err, file.Close())
}

// names adds an agent's tasks. An agent that never had an event of its own has no ledger of its own.
func (f *exportFlags) names(c *cobra.Command, d *desk, args []string) (names []string, err error) {
	if !f.tasks {
		return args, nil
	}
	for _, agent := range args {
		if err := d.know(c.Context(), agent); err != nil {
			return nil, err
		}
		if own, _, err := d.engine.Ledger(c.Context(), agent); err != nil {
			return nil, err
		} else if len(own) > 0 {
			names = append(names, agent)
		}
		for _, ended := range []bool{false, true} {
			q := delta.TaskQuery{Agent: agent, Ended: ended}
			for more := true; more; {
				page, err := d.engine.Tasks(c.Context(), q)
				if err != nil {
					return nil, err
				}
				for _, t := range page.Tasks {
					names = append(names, t.ID)
				}
				q.After, more = page.Next, page.Next != ""
			}
		}
	}
	return names, nil
}

// keeps reports whether the file of heads has this very head, signed by the same keys: Ed25519 signs one text one way.
func (f *exportFlags) keeps(signed string) (bool, error) {
	text, err := os.ReadFile(f.heads)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if info, err := os.Stat(f.heads); err == nil && !info.Mode().IsRegular() {
		return false, nil // a pipe keeps nothing
	}
	return bytes.Contains(text, []byte(signed)), err
}
