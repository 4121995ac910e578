package action

import (
	"fmt"
	"strings"
	"unicode"
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

// lookAlike maps characters to their prototypes, after Unicode TR39 confusables.txt: those of ASCII, and the lower-case
// Cyrillic and Greek letters that look Latin. Upper-case letters are made lower-case first, so what either case looks like
// has one prototype: 1, I, i, l and L are all l.
var lookAlike = map[rune]string{
	'0': "o", '1': "l", 'i': "l", '|': "l", 'm': "rn", 'w': "vv",
	'а': "a", 'в': "b", 'с': "c", 'ԁ': "d", 'е': "e", 'ё': "e", 'һ': "h", 'н': "h", 'і': "l", 'ї': "l", 'ӏ': "l", 'ј': "j", 'к': "k",
	'м': "rn", 'о': "o", 'р': "p", 'ԛ': "q", 'ѕ': "s", 'т': "t", 'у': "y", 'ѵ': "v", 'ԝ': "vv", 'х': "x", 'з': "3",
	'α': "a", 'ά': "a", 'β': "b", 'ε': "e", 'έ': "e", 'ζ': "z", 'η': "n", 'ή': "n", 'ι': "l", 'ί': "l", 'κ': "k", 'μ': "rn", 'ν': "v",
	'ο': "o", 'ό': "o", 'ρ': "p", 'τ': "t", 'υ': "y", 'ύ': "y", 'χ': "x", 'γ': "y",
}

// Skeleton returns the form in which two names that a person, or a model, would take for each other are equal. Case and
// separators do not count: "sendEmail", "send-email" and "send_email" read as one name aloud.
func Skeleton(name string) string { return skeletonOf(name) }

// skeletonOf folds case before anything else: else what looks like the one case of a letter would stay apart from the
// other. Only letters, marks and digits count.
func skeletonOf(s string) string {
	var b strings.Builder
	for _, r := range s {
		r = unicode.ToLower(r)
		if base := latin(r); base != 0 {
			r = base
		}
		switch p, ok := lookAlike[r]; {
		case ok:
			b.WriteString(p)
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}
