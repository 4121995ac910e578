package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// at makes an error that names a place of the file.
func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", n.Line, fmt.Errorf(format, args...))
}

// field is one key of a mapping that may be there, and what to do with its value.
type field struct {
	name string
	read func(*yaml.Node) error
}

// mapping reads a mapping whose keys are all known. Every fault is in the error, in the order of the file.
func mapping(n *yaml.Node, what string, fields ...field) error {
	if n.Kind != yaml.MappingNode {
		return at(n, "%s is %s, want a mapping", what, kind(n))
	}
	var faults []error
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		k := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		switch {
		case k < 0:
			faults = append(faults, at(key, "%s has no key %q%s", what, key.Value, suggestion(key.Value, fields)))
		case seen[key.Value]:
			faults = append(faults, at(key, "%s has the key %q twice", what, key.Value))
		default:
			seen[key.Value] = true
			if err := fields[k].read(value); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return errors.Join(faults...)
}

// suggestion names the known key that is nearest to a misspelt one, or all of them.
func suggestion(have string, fields []field) string {
	best, least := "", 1+len(have)/3
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
		if d := action.Distance(strings.ToLower(have), f.name); d <= least {
			best, least = f.name, d-1
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; known are " + strings.Join(names, ", ")
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias, which is not supported"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "a boolean"
	case "!!int", "!!float":
		return "a number"
	}
	return "text"
}

// list reads every element of a list.
func list(name string, read func(*yaml.Node) error) field {
	return field{name, func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return at(n, "%s is %s, want a list", name, kind(n))
		}
		var faults []error
		for _, e := range n.Content {
			if err := read(e); err != nil {
				faults = append(faults, err)
			}
		}
		return errors.Join(faults...)
	}}
}

// scalar reads a value of one of the given YAML tags.
func scalar(name, want string, read func(*yaml.Node) error, tags ...string) field {
	return field{name, func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) {
			return at(n, "%s is %s, want %s", name, kind(n), want)
		}
		if err := read(n); err != nil {
			return at(n, "%s is %q, want %s", name, n.Value, want)
		}
		return nil
	}}
}

func text(name string, to *string) field {
	return scalar(name, "text", func(n *yaml.Node) error { *to = n.Value; return nil }, "!!str")
}

func texts(name string, to *[]string) field {
	return list(name, func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			return at(n, "%s holds %s, want text", name, kind(n))
		}
		*to = append(*to, n.Value)
		return nil
	})
}

func truth(name string, to *bool) field {
	return scalar(name, "true or false", func(n *yaml.Node) error { return n.Decode(to) }, "!!bool")
}

func whole(name string, to func(int64)) field {
	return scalar(name, "a whole number", func(n *yaml.Node) error {
		var v int64
		err := n.Decode(&v)
		to(v)
		return err
	}, "!!int")
}

func number(name string, to *float64) field {
	return scalar(name, "a number", func(n *yaml.Node) error { return n.Decode(to) }, "!!int", "!!float")
}

func duration(name string, to func(time.Duration)) field {
	return scalar(name, "a duration such as 10m", func(n *yaml.Node) error {
		d, err := time.ParseDuration(n.Value)
		to(d)
		return err
	}, "!!str")
}

// money reads a decimal amount exactly, in millionths.
func money(name string, to func(int64)) field {
	return scalar(name, "an amount such as 2.50", func(n *yaml.Node) error {
		whole, fraction, _ := strings.Cut(n.Value, ".")
		if len(fraction) > 6 {
			return errors.New("more than six decimals")
		}
		v, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", 6-len(fraction)), 10, 64)
		to(v)
		return err
	}, "!!int", "!!float")
}

// document reads any value as JSON. Members keep what they are written as: integers their digits, dates their text.
func document(name string, to *json.RawMessage) field {
	return field{name, func(n *yaml.Node) error {
		var b strings.Builder
		if err := writeJSON(&b, n); err != nil {
			return err
		}
		*to = json.RawMessage(b.String())
		return nil
	}}
}

func writeJSON(b *strings.Builder, n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		return writeScalar(b, n)
	case yaml.SequenceNode:
		return writeList(b, n.Content, "[]", 1)
	case yaml.MappingNode:
		return writeList(b, n.Content, "{}", 2)
	}
	return at(n, "value is %s", kind(n))
}

// writeList writes elements, or pairs of key and value.
func writeList(b *strings.Builder, nodes []*yaml.Node, brackets string, step int) error {
	b.WriteByte(brackets[0])
	for i, n := range nodes {
		key := step == 2 && i%2 == 0
		switch {
		case step == 2 && !key:
			b.WriteByte(':')
		case i > 0:
			b.WriteByte(',')
		}
		if key {
			if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!merge" {
				return at(n, "key is not plain text")
			}
			b.Write(quoted(n.Value))
			continue
		}
		if err := writeJSON(b, n); err != nil {
			return err
		}
	}
	b.WriteByte(brackets[1])
	return nil
}

func writeScalar(b *strings.Builder, n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		b.WriteString("null")
	case "!!bool", "!!int", "!!float":
		if n.ShortTag() != "!!bool" && json.Valid([]byte(n.Value)) {
			b.WriteString(n.Value)
			return nil
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return at(n, "value %q: %w", n.Value, err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return at(n, "value %q cannot be written as JSON", n.Value)
		}
		b.Write(raw)
	case "!!str", "!!timestamp":
		b.Write(quoted(n.Value))
	default:
		return at(n, "value has the tag %s, which is not supported", n.ShortTag())
	}
	return nil
}

func quoted(s string) []byte {
	raw, _ := json.Marshal(s) // a string always has a JSON form
	return raw
}
