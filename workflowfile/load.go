package workflowfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// MaxFile is the size, in bytes, from which on a file is refused.
const MaxFile = 1 << 20

// Load reads a file, see [Parse].
func Load(path string) (*workflow.Definition, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d, err := Parse(text)
	if err != nil {
		return nil, prefixed(path, err)
	}
	return d, nil
}

// prefixed puts the name of a file before every one of several errors.
func prefixed(path string, err error) error {
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		return fmt.Errorf("%s: %w", path, err)
	}
	var out []error
	for _, e := range all.Unwrap() {
		out = append(out, fmt.Errorf("%s: %w", path, e))
	}
	return errors.Join(out...)
}

// Parse reads one workflow and checks it. The error joins all faults of the first kind that there
// is (what is written wrongly, what is not known, what flows between steps), each with its line where it has one.
func Parse(text []byte) (*workflow.Definition, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty")
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document in it")
	}
	r := &reader{lines: map[string]int{}}
	spec := r.workflow(doc.Content[0])
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	d, err := workflow.Compile(spec)
	if err == nil {
		err = schemas(d)
	}
	if err != nil {
		return nil, r.located(err)
	}
	return d, nil
}

// schemas compiles every contract, as the driver will.
func schemas(d *workflow.Definition) error {
	var faults []error
	for _, c := range d.Contracts() {
		if _, err := schema.Foreign(c.Schema); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", c.Of, err))
		}
	}
	return errors.Join(faults...)
}

var named = regexp.MustCompile(`^(step|phase) ("(?:[^"\\]|\\.)*")`)

// located puts the line of a step or a phase before the faults that name it first.
func (r *reader) located(err error) error {
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		return err
	}
	var out []error
	for _, e := range all.Unwrap() {
		m := named.FindString(e.Error())
		if line, ok := r.lines[m]; ok {
			e = fmt.Errorf("line %d: %w", line, e)
		}
		out = append(out, e)
	}
	return errors.Join(out...)
}
