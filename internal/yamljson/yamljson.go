// Package yamljson reads YAML as far as it says what JSON can say.
package yamljson

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// MaxDepth is how deep values may be nested.
const MaxDepth = 64

// Form says how what JSON has no form for is written.
type Form struct {
	Time func(*yaml.Node) (string, error) // a time that is not quoted; nil keeps it as it is written
}

// Append writes a value as JSON: numbers as they are written, members in their order. Aliases, tags, keys that are no text and
// keys given twice are errors that name the line.
func (f Form) Append(b []byte, n *yaml.Node) ([]byte, error) { return f.append(b, n, 0) }

func (f Form) append(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	switch {
	case depth > MaxDepth:
		return nil, fmt.Errorf("line %d: it is nested deeper than %d", n.Line, MaxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, fmt.Errorf("line %d: aliases are not supported", n.Line)
	case n.Kind == yaml.MappingNode:
		return f.mapping(b, n, depth)
	case n.Kind == yaml.SequenceNode:
		b = append(b, '[')
		for i, e := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = f.append(b, e, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	return f.scalar(b, n)
}

func (f Form) mapping(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	b = append(b, '{')
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return nil, fmt.Errorf("line %d: a key is not text", key.Line)
		}
		if line, twice := seen[key.Value]; twice {
			return nil, fmt.Errorf("line %d: the key %q was given in line %d already", key.Line, key.Value, line)
		}
		seen[key.Value] = key.Line
		if i > 0 {
			b = append(b, ',')
		}
		b = append(text(b, key.Value), ':')
		var err error
		if b, err = f.append(b, value, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func (f Form) scalar(b []byte, n *yaml.Node) ([]byte, error) {
	switch n.Tag {
	case "!!null":
		return append(b, "null"...), nil
	case "!!bool":
		var v bool
		if err := n.Decode(&v); err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		return fmt.Append(b, v), nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return append(b, n.Value...), nil
		}
		return nil, fmt.Errorf("line %d: %s is not a number as JSON writes it", n.Line, n.Value)
	case "!!timestamp":
		if f.Time == nil {
			return text(b, n.Value), nil
		}
		at, err := f.Time(n)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		return text(b, at), nil
	case "!!str":
		return text(b, n.Value), nil
	}
	return nil, fmt.Errorf("line %d: %s is not supported", n.Line, n.Tag)
}

func text(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string cannot fail
	return append(b, quoted...)
}
