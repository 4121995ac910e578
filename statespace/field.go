package statespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	every        = "*"
	outputPrefix = "output:"
)

// field is one path into an action's input or output.
type field struct {
	path   string
	output bool
	segs   []string
	text   string // as it appears in keys
}

func newField(path string, output bool) field {
	return field{path: path, output: output, segs: strings.Split(path, "."), text: fieldText(path, output)}
}

// fieldText writes a path so that the characters that structure a key never occur in it unquoted.
func fieldText(path string, output bool) string {
	text := path
	if !isPlain(path) {
		text = quote(path)
	}
	if output {
		return outputPrefix + text
	}
	return text
}

// readField reverses fieldText on what scanField found.
func readField(text string) (path string, output bool, err error) {
	text, output = strings.CutPrefix(text, outputPrefix)
	path = text
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal([]byte(text), &path); err != nil {
			return "", false, fmt.Errorf("field %s: %w", text, err)
		}
	}
	return path, output, checkPath(path)
}

func isPlain(path string) bool {
	for i := 0; i < len(path); i++ {
		if c := path[i]; !isWord(c) && !strings.ContainsRune("_.*$/-", rune(c)) {
			return false
		}
	}
	return path != ""
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// checkPath reports why a path cannot be bound on.
func checkPath(path string) error {
	if path == "" {
		return errors.New("path is empty")
	}
	if !validText(path) {
		return fmt.Errorf("path %q is not valid UTF-8", path)
	}
	for seg := range strings.SplitSeq(path, ".") {
		if seg == "" {
			return fmt.Errorf("path %q has an empty segment", path)
		}
	}
	return nil
}

// overlaps reports whether one path lies on or below the other; "*" meets any segment.
func overlaps(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != every && b[i] != every {
			return false
		}
	}
	return true
}

// lookup follows a path without "*" through objects. Absent and null are the same: nothing to bind on.
func lookup(tree any, segs []string) (any, bool) {
	for _, seg := range segs {
		m, ok := tree.(map[string]any)
		if !ok {
			return nil, false
		}
		tree = m[seg]
	}
	return tree, tree != nil
}
