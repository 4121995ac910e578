package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/ledger"
)

const sourceHelp = `

SOURCE is a file that export wrote, "-" for standard input, or the name of a ledger
in the store: a task (agent~task), or an agent for the agent's own.`

// fromFile reports whether a source is a file.
func fromFile(source string) bool {
	if source == "-" {
		return true
	}
	info, err := os.Stat(source)
	return err == nil && !info.IsDir()
}

// exported reads every ledger of a source. Files are checked to the byte; what comes from the store is verified.
func (f *storeFlags) exported(c *cobra.Command, source string) (all []*ledger.Exported, err error) {
	if !fromFile(source) {
		return f.storedLedger(c, source)
	}
	in := c.InOrStdin()
	if source != "-" {
		file, err := os.Open(source)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	r := ledger.NewImporter(in)
	for {
		x, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		all = append(all, x)
	}
}

func (f *storeFlags) storedLedger(c *cobra.Command, id string) (all []*ledger.Exported, err error) {
	var file bytes.Buffer
	do := onDesk(f, func(c *cobra.Command, d *desk, _ []string) error {
		_, err := d.export(c.Context(), &file, id)
		return err
	})
	if err := do(c, nil); err != nil {
		return nil, err
	}
	x, err := ledger.NewImporter(&file).Next()
	return []*ledger.Exported{x}, err
}

// export writes one ledger of the store.
func (d *desk) export(ctx context.Context, w io.Writer, id string) (ledger.Head, error) {
	records, _, err := d.engine.Ledger(ctx, id)
	if err != nil {
		return ledger.Head{}, fmt.Errorf("export %s: %w", id, err)
	}
	if len(records) == 0 {
		return ledger.Head{}, coded{exitNotFound, fmt.Errorf("ledger %s: there are no records", id)}
	}
	agent, task, _ := strings.Cut(id, "~")
	base, err := ledger.BaseIn(records)
	if err != nil {
		return ledger.Head{}, fmt.Errorf("export %s: %w", id, err)
	}
	x := ledger.NewExporterFrom(w, agent, task, base)
	for _, r := range records {
		if err := x.Add(r); err != nil {
			return ledger.Head{}, fmt.Errorf("export %s: %w", id, err)
		}
	}
	return x.End()
}

// one is the only ledger of a source, or the one that is named.
func one(all []*ledger.Exported, name string) (*ledger.Exported, error) {
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	var names []string
	for _, x := range all {
		if x.Head.Name() == name {
			return x, nil
		}
		names = append(names, x.Head.Name())
	}
	if name == "" {
		return nil, usageError{fmt.Errorf("which ledger? give --ledger, one of %s", strings.Join(names, ", "))}
	}
	return nil, coded{exitNotFound, fmt.Errorf("there is no ledger %s among %s", name, strings.Join(names, ", "))}
}

// headFlags say where heads are and whose signature counts.
type headFlags struct {
	files  []string
	public []string
}

func (f *headFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.files, "heads", nil, "file of signed heads that were kept; may be given more than once")
	c.Flags().StringArrayVar(&f.public, "public", nil, "public key of who signed them, or a file that holds it")
}

// read returns the heads by their ledgers; of several of one ledger all of them. None is given without a signature of a
// key that was named.
func (f *headFlags) read() (map[string][]keptHead, error) {
	if len(f.files) == 0 {
		return nil, nil
	}
	keys, err := f.keys()
	if err != nil {
		return nil, err
	}
	out := map[string][]keptHead{}
	for _, path := range f.files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("heads: %w", err)
		}
		signed := splitHeads(string(text))
		if len(signed) == 0 {
			return nil, fmt.Errorf("heads %s: there is none in it; heads that were kept do not vanish by themselves", path)
		}
		for _, signed := range signed {
			h, err := ledger.OpenHead(signed, keys...)
			if err != nil {
				return nil, fmt.Errorf("heads %s: %w", path, err)
			}
			out[h.Name()] = append(out[h.Name()], keptHead{h, signed})
		}
	}
	return out, nil
}

// keys are those whose signature counts.
func (f *headFlags) keys() (keys []string, err error) {
	if len(f.public) == 0 {
		return nil, usageError{errors.New("whose signature counts? give --public")}
	}
	for _, p := range f.public {
		if fromFile(p) {
			text, err := os.ReadFile(p)
			if err != nil {
				return nil, fmt.Errorf("public key: %w", err)
			}
			p = strings.TrimSpace(string(text))
		}
		keys = append(keys, p)
	}
	return keys, nil
}

// compactJSON undoes what printing a document for people did to a part of it.
func compactJSON(raw json.RawMessage) (string, error) {
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.String(), err
}

// keptHead is a head and the note that it came in.
type keptHead struct {
	ledger.Head
	signed string
}

// splitHeads cuts a file of signed heads, one behind the other, into one each: every head begins with the same words.
func splitHeads(text string) (all []string) {
	const begin = "delta-agents ledger "
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) || len(all) == 0 {
			all = append(all, "")
		}
		all[len(all)-1] += line
	}
	return all
}

// signer reads a secret key from a file.
func signer(path string) (ledger.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	s, err := ledger.NewSigner(string(text))
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", path, err)
	}
	return s, nil
}
