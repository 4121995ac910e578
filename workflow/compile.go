package workflow

import "errors"

// Definition is a workflow that was checked. It does not change and may be used by any number of goroutines.
type Definition struct {
	spec   Spec
	digest string
}

// Compile checks a workflow. The error names every fault.
func Compile(s Spec) (*Definition, error) { return compile(s, nil) }

func compile(s Spec, faults []error) (*Definition, error) {
	return &Definition{spec: s}, errors.Join(faults...)
}

// Spec returns the workflow as it was written.
func (d *Definition) Spec() Spec { return d.spec }

// Name returns the name of the workflow.
func (d *Definition) Name() string { return d.spec.Name }

// Version returns the version its author gave it.
func (d *Definition) Version() string { return d.spec.Version }

// Digest names exactly this definition: SHA-256, hex.
func (d *Definition) Digest() string { return d.digest }

// Warnings are what is sound and still should be looked at.
func (d *Definition) Warnings() []string { return nil }

// Children returns the names of the definitions that its SUB_SOPs run, each once.
func (d *Definition) Children() []string { return nil }
