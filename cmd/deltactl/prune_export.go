package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// exportTo writes each ledger to a file of its own.
func exportTo(dir string) func(context.Context, delta.Pruned, []txn.Stored) error {
	return func(_ context.Context, t delta.Pruned, records []txn.Stored) error {
		agent, task, _ := strings.Cut(t.ID, "~")
		return writeLedger(filepath.Join(dir, fileName(agent)), fileName(task), agent, task, ledger.Base{}, records)
	}
}

// exportOwn writes what is dropped of an agent's own ledger to a file that no task's can be.
func exportOwn(dir, agent string) func(context.Context, ledger.Base, []txn.Stored) error {
	return func(_ context.Context, base ledger.Base, records []txn.Stored) error {
		name := fmt.Sprintf("%d-%d", records[0].Seq, records[len(records)-1].Seq)
		return writeLedger(filepath.Join(dir, fileName(agent), "own"), name, agent, "", base, records)
	}
}

// writeLedger writes a file whole or not at all, and durably before it returns.
func writeLedger(under, name, agent, task string, base ledger.Base, records []txn.Stored) (err error) {
	if err := os.MkdirAll(under, 0o700); err != nil {
		return err
	}
	w, err := os.CreateTemp(under, ".export-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(w.Name())
		}
	}()
	x := ledger.NewExporterFrom(w, agent, task, base)
	for _, r := range records {
		if err := x.Add(r); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	_, err = x.End()
	if err = errors.Join(err, w.Sync(), w.Close()); err != nil {
		return err
	}
	if err := settleIn(w.Name(), under, name); err != nil {
		return err
	}
	return syncDir(under)
}

// settleIn gives a written file its name, which no other file has: an id may be used again once its task was pruned, and
// what was exported of the one before it is evidence. The same bytes are those of a run that did not come to its end; whatever
// else is there stays, and this is name~2, a name that no other task has.
func settleIn(written, under, name string) error {
	for n := 1; ; n++ {
		to := filepath.Join(under, name+".jsonl")
		if n > 1 {
			to = filepath.Join(under, fmt.Sprintf("%s~%d.jsonl", name, n))
		}
		switch err := writeNew(to, "", 0o600); {
		case err == nil:
			if err = os.Rename(written, to); err != nil {
				err = errors.Join(err, os.Remove(to))
			}
			return err
		case !errors.Is(err, fs.ErrExist):
			return err
		}
		if same, err := sameBytes(written, to); err != nil {
			return err
		} else if same {
			return os.Remove(written)
		}
	}
}

// sameBytes reports whether two files hold the same.
func sameBytes(a, b string) (bool, error) {
	x, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer y.Close()
	p, q := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, errA := io.ReadFull(x, p)
		m, errB := io.ReadFull(y, q)
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if errA == nil && errB == nil {
			continue
		}
		for _, err := range []error{errA, errB} {
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return false, err
			}
		}
		return true, nil
	}
}

// fileName makes a name safe as that of a file; names have no slash, but may start with a dot.
func fileName(name string) string {
	name = url.PathEscape(name)
	if strings.HasPrefix(name, ".") {
		return "%2E" + name[1:]
	}
	return name
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
