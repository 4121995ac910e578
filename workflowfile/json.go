package workflowfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

const maxDepth = 64

// appendJSON translates YAML as far as it says what JSON can say. Numbers stay as they are written.
func appendJSON(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	switch {
	case depth > maxDepth:
		return nil, fmt.Errorf("line %d: it is nested deeper than %d", n.Line, maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, fmt.Errorf("line %d: aliases are not supported", n.Line)
	case n.Kind == yaml.ScalarNode:
		return appendScalar(b, n)
	}
	object := n.Kind == yaml.MappingNode
	open, shut := byte('['), byte(']')
	if object {
		open, shut = '{', '}'
	}
	b = append(b, open)
	seen := map[string]bool{}
	for i, e := range n.Content {
		if object && i%2 == 0 {
			if e.Kind != yaml.ScalarNode || e.Tag == "!!merge" || seen[e.Value] {
				return nil, fmt.Errorf("line %d: the key %q is not text, or was given already", e.Line, e.Value)
			}
			seen[e.Value] = true
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, e.Value), ':')
			continue
		}
		if !object && i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendJSON(b, e, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, shut), nil
}

func appendScalar(b []byte, n *yaml.Node) ([]byte, error) {
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
	case "!!str", "!!timestamp":
		return appendText(b, n.Value), nil
	}
	return nil, fmt.Errorf("line %d: %s is not supported", n.Line, n.Tag)
}

func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string cannot fail
	return append(b, text...)
}

var errNoJSON = errors.New("it is no JSON")

// nodeOf is the way back, members in their order.
func nodeOf(text json.RawMessage) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return nextNode(d)
}

func nextNode(d *json.Decoder) (*yaml.Node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errNoJSON
	}
	switch t := t.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		if t == '{' {
			n = &yaml.Node{Kind: yaml.MappingNode}
		}
		for d.More() {
			e, err := nextNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, e)
		}
		_, err := d.Token()
		return n, err
	case string:
		return scalar(t), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
}

// scalar is text, quoted where it would read as something else.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if odd.MatchString(s) { // a block of text would not read as the same
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// odd are white space other than a newline or a space between words, and what no editor shows.
var odd = regexp.MustCompile(`[^\n[:print:]\p{L}\p{N}\p{P}\p{S}]|(?m)^[ \n]|[ \n]$`)
