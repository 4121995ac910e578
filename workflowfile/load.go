package workflowfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// MaxFile is the size, in bytes, from which on a file is refused.
const MaxFile = 1 << 20

// Load reads a file, see [Parse].
func Load(path string) (*workflow.Definition, error) {
	f, err := load(path)
	return f.def, err
}

// loaded is what was read of a file.
type loaded struct {
	path string
	name string // of its workflow, as far as it could be read
	def  *workflow.Definition
	r    *reader
}

func load(path string) (loaded, error) {
	out := loaded{path: path}
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return out, fmt.Errorf("%s: %w", path, err)
	}
	var spec workflow.Spec
	out.def, spec, out.r, err = parse(text)
	out.name = spec.Name
	return out, prefixed(path, err)
}

// LoadAll reads several files and checks them also together, see [workflow.Family]. The error joins the faults of all files, each
// with its file, and its line where it has one; one between files names both.
func LoadAll(paths ...string) ([]*workflow.Definition, error) {
	var faults []error
	var files []loaded
	for _, path := range paths {
		f, err := load(path)
		files = append(files, f)
		faults = append(faults, each(err)...)
	}
	if len(files) > 1 {
		faults = append(faults, across(files)...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	var out []*workflow.Definition
	for _, f := range files {
		out = append(out, f.def)
	}
	return out, nil
}

// across are the faults between files. What a file that could not be read may hold is not missed.
func across(files []loaded) (faults []error) {
	var defs []*workflow.Definition
	of, whole := map[string]*loaded{}, true
	for i := range files {
		f := &files[i]
		whole = whole && (f.def != nil || f.name != "")
		if f.def != nil {
			defs = append(defs, f.def)
		}
		if f.name != "" && (of[f.name] == nil || f.def != nil) {
			of[f.name] = f
		}
	}
	for _, err := range each(workflow.Family(defs...)) {
		var fault *workflow.FamilyFault
		if !errors.As(err, &fault) {
			faults = append(faults, err)
			continue
		}
		child := of[fault.Child]
		if fault.Child != "" && (child == nil && !whole || child != nil && child.def == nil) {
			continue
		}
		faults = append(faults, located(fault, of, files))
	}
	return faults
}

// located puts the files of a fault to it.
func located(fault *workflow.FamilyFault, of map[string]*loaded, files []loaded) error {
	var in, others []string
	if f := of[fault.Workflow]; f != nil {
		in = append(in, f.path)
		if line := f.r.lines[fmt.Sprintf("step %q", fault.Step)]; line > 0 {
			in = append(in, fmt.Sprintf("line %d", line))
		}
	}
	if child := of[fault.Child]; child != nil {
		at := child.path
		if line := child.r.lines["input"]; line > 0 {
			at = fmt.Sprintf("%s, line %d", at, line)
		}
		others = append(others, at)
	}
	for _, name := range fault.Way {
		if f := of[name]; f != nil && name != fault.Workflow {
			others = append(others, f.path)
		}
	}
	for i := range files {
		if fault.Step == "" && fault.Way == nil && files[i].name == fault.Workflow && files[i].path != of[fault.Workflow].path {
			others = append(others, files[i].path)
		}
	}
	before, after := "", ""
	if len(in) > 0 {
		before = strings.Join(in, ": ") + ": "
	}
	if len(others) > 0 {
		after = " (" + strings.Join(slices.Compact(others), ", ") + ")"
	}
	return fmt.Errorf("%s%w%s", before, fault, after)
}

// prefixed puts the name of a file before every one of several errors.
func prefixed(path string, err error) error {
	var out []error
	for _, e := range each(err) {
		out = append(out, fmt.Errorf("%s: %w", path, e))
	}
	return errors.Join(out...)
}

// Parse reads one workflow and checks it. The error joins all faults that there are: what is written wrongly, what is not known,
// what flows between steps, schemas that do not compile; each with its line where it has one, apart from what follows from others.
func Parse(text []byte) (*workflow.Definition, error) {
	d, _, _, err := parse(text)
	return d, err
}

func parse(text []byte) (*workflow.Definition, workflow.Spec, *reader, error) {
	r := &reader{lines: map[string]int{}}
	if len(text) > MaxFile {
		return nil, workflow.Spec{}, r, fmt.Errorf("it is larger than %d bytes", MaxFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, workflow.Spec{}, r, errors.New("it is empty")
	case err != nil:
		return nil, workflow.Spec{}, r, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, workflow.Spec{}, r, errors.New("there is more than one document in it")
	}
	spec := r.workflow(doc.Content[0])
	d, err := workflow.Compile(spec)
	if err := r.all(&spec, err); err != nil {
		return nil, spec, r, err
	}
	return d, spec, r, nil
}
