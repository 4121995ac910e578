package skills

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Info is what the front matter of a skill says.
type Info struct {
	Name          string            // of the skill and of its folder
	Description   string            // what it is for and when to use it
	License       string            // "" where it says none
	Compatibility string            // what it needs around it, "" where it says nothing
	AllowedTools  []string          // what it suggests may be used; it grants nothing
	Metadata      map[string]string // anything else its author noted
}

// String is the name and what it is for.
func (i Info) String() string { return i.Name + ": " + i.Description }

// Skill is a skill that was read.
type Skill struct {
	Info
	Body string // Markdown
}

// Limits of the format on the fields of a front matter, in characters.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

// CheckName reports why s cannot name a skill. A name is 1 to 64 lower-case ASCII letters, digits and single hyphens, which
// neither begin nor end it.
func CheckName(s string) error {
	if s == "" || len(s) > maxName {
		return fmt.Errorf("a skill's name has 1 to %d characters, this has %d", maxName, len(s))
	}
	for i := range len(s) {
		c := s[i]
		hyphen := c == '-' && i > 0 && i < len(s)-1 && s[i-1] != '-'
		if !hyphen && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return fmt.Errorf("a skill's name has lower-case letters, digits and single hyphens inside, not %q", s)
		}
	}
	return nil
}

// front is a front matter as written. Fields that the format does not know are left to those who put them there.
type front struct {
	Name          string            `yaml:"name"`
	Description   string            `yaml:"description"`
	License       string            `yaml:"license"`
	Compatibility string            `yaml:"compatibility"`
	AllowedTools  tools             `yaml:"allowed-tools"`
	Metadata      map[string]string `yaml:"metadata"`
}

// tools are written with spaces between them, or as a list.
type tools []string

// UnmarshalYAML reads either form.
func (t *tools) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = strings.Fields(n.Value)
		return nil
	}
	return n.Decode((*[]string)(t))
}

// Parse reads the text of a SKILL.md; with frontOnly the text may end anywhere behind the front matter and Body is empty.
// The error says what is missing.
func Parse(text []byte, frontOnly bool) (Skill, error) {
	head, body, err := split(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return Skill{}, err
	}
	var f front
	if err := yaml.Unmarshal(head, &f); err != nil {
		return Skill{}, fmt.Errorf("its front matter is not YAML of the format: %w", err)
	}
	s := Skill{Info: Info{
		Name: f.Name, Description: strings.TrimSpace(f.Description), License: f.License, Compatibility: f.Compatibility,
		AllowedTools: f.AllowedTools, Metadata: maps.Clone(f.Metadata),
	}}
	if !frontOnly {
		s.Body = strings.TrimSpace(string(body))
	}
	return s, s.check(frontOnly)
}

func (s *Skill) check(frontOnly bool) error {
	var faults []error
	if err := CheckName(s.Name); err != nil {
		faults = append(faults, fmt.Errorf("name: %w", err))
	}
	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0:
		faults = append(faults, errors.New("description is missing: say what the skill is for and when to use it"))
	case n > maxDescription:
		faults = append(faults, fmt.Errorf("description has %d characters, at most %d are allowed; move the rest into the text", n, maxDescription))
	}
	if n := utf8.RuneCountInString(s.Compatibility); n > maxCompatibility {
		faults = append(faults, fmt.Errorf("compatibility has %d characters, at most %d are allowed", n, maxCompatibility))
	}
	texts := []string{s.Name, s.Description, s.License, s.Compatibility, s.Body}
	if slices.ContainsFunc(texts, func(t string) bool { return !utf8.ValidString(t) }) {
		faults = append(faults, errors.New("it is not UTF-8"))
	}
	if !frontOnly && s.Body == "" {
		faults = append(faults, errors.New("it has no text behind the front matter"))
	}
	return errors.Join(faults...)
}

// split finds the front matter: the lines between a first line of three dashes and the next.
func split(text []byte) (head, body []byte, err error) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if !dashes(first) {
		return nil, nil, errors.New("it does not begin with a front matter: a line \"---\", name and description, and a line \"---\"")
	}
	for at := 0; at < len(rest) && at < MaxFront; {
		line, _, more := bytes.Cut(rest[at:], []byte("\n"))
		next := min(at+len(line)+1, len(rest))
		if dashes(line) {
			return rest[:at], rest[next:], nil
		}
		if !more {
			break
		}
		at = next
	}
	return nil, nil, fmt.Errorf("its front matter does not end with a line \"---\" within %d bytes", MaxFront)
}

func dashes(line []byte) bool {
	return string(bytes.TrimRight(line, " \t\r")) == "---"
}
