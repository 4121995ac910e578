package action

import (
	"fmt"
	"strings"
)

// MaxName is the longest name accepted, in bytes. It is the limit the Model Context Protocol recommends for tool names.
const MaxName = 128

// CheckName reports why s cannot name an action, an agent, a task or a field tag. A name is 1 to 128 ASCII letters,
// digits, '_', '-', '.' and '/', starting with a letter, a digit or '_'. ASCII keeps look-alikes few; those that remain
// are found by [Skeleton].
func CheckName(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("name is empty")
	case len(s) > MaxName:
		return fmt.Errorf("name %q… is %d bytes long, at most %d are allowed", s[:24], len(s), MaxName)
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		inner := i > 0 && (c == '-' || c == '.' || c == '/')
		if !inner && c != '_' && !isAlphanumeric(c) {
			return fmt.Errorf("name %q: character %q at %d is not allowed (letters, digits, '_', and after the first '-', '.', '/')", s, rune(c), i)
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// skeleton maps the ASCII characters of a name to their prototypes, after Unicode TR39 confusables.txt restricted to
// ASCII. Case and separators are folded too: "sendEmail", "send-email" and "send_email" read as one name aloud.
var skeleton = strings.NewReplacer("0", "o", "O", "o", "1", "l", "I", "l", "m", "rn", "M", "rn", "-", "", "_", "", ".", "", "/", "")

// Skeleton returns the form in which two names that a person, or a model, would take for each other are equal.
func Skeleton(name string) string { return strings.ToLower(skeleton.Replace(name)) }
