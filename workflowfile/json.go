package workflowfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

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
