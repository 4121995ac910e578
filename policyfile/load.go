package policyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-ab2cfece/delta-agents/internal/yamljson"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// MaxFile is the size, in bytes, from which on a file of rules is refused.
const MaxFile = 4 << 20

// Load reads and compiles a file of rules and what it includes.
func Load(path string) (*policy.Bundle, error) {
	s, err := Read(path)
	if err != nil {
		return nil, err
	}
	b, err := s.Compile()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// Read reads a file of rules and what it includes, and does not compile them.
func Read(path string) (policy.Sources, error) {
	text, err := readFile(path)
	if err != nil {
		return policy.Sources{}, err
	}
	name := filepath.Base(path)
	switch filepath.Ext(path) {
	case ".cedar":
		return policy.Sources{Policies: []policy.File{{Name: name, Text: text}}}, nil
	case ".json":
	case ".yaml", ".yml":
		if text, err = asJSON(text); err != nil {
			return policy.Sources{}, fmt.Errorf("%s: %w", path, err)
		}
	default:
		return policy.Sources{}, fmt.Errorf("%s: rules are in files named .cedar, .yaml, .yml or .json", path)
	}
	s, include, err := policy.ParseSources(name, text)
	if err != nil {
		return policy.Sources{}, fmt.Errorf("%s: %w", filepath.Dir(path), err)
	}
	var faults []error
	for _, other := range include {
		f, err := included(path, other)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.Policies = append(s.Policies, f)
	}
	return s, errors.Join(faults...)
}

// included reads a file that another names. Only Cedar is included, from the folder of the file or below it.
func included(path, name string) (policy.File, error) {
	if filepath.Ext(name) != ".cedar" || !filepath.IsLocal(name) {
		return policy.File{}, fmt.Errorf("%s: include %q: want a .cedar file in its folder or below", path, name)
	}
	text, err := readFile(filepath.Join(filepath.Dir(path), name))
	if err != nil {
		return policy.File{}, fmt.Errorf("%s: include: %w", path, err)
	}
	return policy.File{Name: filepath.ToSlash(name), Text: text}, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(text) > MaxFile:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, MaxFile)
	}
	return text, nil
}

// asJSON translates YAML as far as it says what JSON can say, and refuses the rest: aliases, tags, keys that are no text,
// keys given twice, several documents.
func asJSON(text []byte) ([]byte, error) {
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document in it")
	}
	return form.Append(nil, doc.Content[0])
}

// form writes times in the one form that rules know.
var form = yamljson.Form{Time: func(n *yaml.Node) (string, error) {
	if !strings.Contains(n.Value, ":") {
		return n.Value, nil
	}
	var v time.Time
	err := n.Decode(&v)
	return v.Format(time.RFC3339Nano), err
}}
