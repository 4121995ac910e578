package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Sink is where entries go. Its methods are called by one goroutine at a time.
type Sink interface {
	// Write takes entries, in the order of their ledger. A nil error says that they are written, as far as the sink can
	// tell; after an error any of them may be, and all are written again later.
	Write(ctx context.Context, entries []Entry) error
	// Close releases what the sink holds.
	Close() error
}

// Lines returns a sink that writes each entry as a line of JSON: to standard output, say. It closes nothing.
func Lines(w io.Writer) Sink { return lines{w} }

type lines struct{ w io.Writer }

func (l lines) Close() error { return nil }

func (l lines) Write(_ context.Context, entries []Entry) error {
	b, err := Marshal(entries)
	if err != nil {
		return err
	}
	_, err = l.w.Write(b)
	return err
}

// Marshal returns the entries as lines of JSON.
func Marshal(entries []Entry) ([]byte, error) {
	var out []byte
	for i := range entries {
		b, err := json.Marshal(&entries[i])
		if err != nil {
			return nil, fmt.Errorf("audit entry %d of %s: %w", entries[i].Seq, entries[i].Ledger, err)
		}
		out = append(append(out, b...), '\n')
	}
	return out, nil
}
