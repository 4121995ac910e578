package action

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxIdentity is the longest identity accepted, in bytes.
const MaxIdentity = 256

// CheckIdentity reports why s cannot name the person or service that requests, approves or operates. An identity is plain:
// what two people read as one name must not be two. It holds 1 to 256 bytes of
//
//   - printable ASCII, a space only inside and alone, and
//   - letters and vowel signs of one script, in composed form: Latin ones with their usual accents, or those of one other
//     script and then no Latin ones (Han, Hiragana and Katakana count as one).
//
// So everything invisible is refused, and so are full-width and mathematical letters, other compatibility characters, and
// letters of one script among those of another. Words that look alike in two scripts are for [SameIdentity].
func CheckIdentity(s string) error {
	switch {
	case s == "":
		return errors.New("identity is empty")
	case len(s) > MaxIdentity:
		return fmt.Errorf("identity %q… is %d bytes long, at most %d are allowed", clipText(s, 24), len(s), MaxIdentity)
	case strings.TrimSpace(s) != s || strings.Contains(s, "  "):
		return fmt.Errorf("identity %q: white space is allowed inside only, one space at a time", s)
	}
	script := ""
	for i, r := range s {
		own := ""
		switch {
		case r == utf8.RuneError:
			return fmt.Errorf("identity %q: invalid UTF-8 at %d", s, i)
		case r < utf8.RuneSelf && r >= ' ' && r != 0x7f:
			if isLetter(r) {
				own = "Latin"
			}
		default:
			if own = scriptOf(r); own == "" {
				return fmt.Errorf("identity %q: character %U at %d is not allowed (printable ASCII and letters of one script)", s, r, i)
			}
		}
		if own != "" && script != "" && own != script {
			return fmt.Errorf("identity %q mixes letters of %s and %s at %d", s, script, own, i)
		}
		script = max(script, own)
	}
	if skeletonOf(s) == "" {
		return fmt.Errorf("identity %q has neither a letter nor a digit", s)
	}
	return nil
}

// MixedScripts returns two scripts of which letters stand in a name, "" where all are of one. Han, Hiragana and Katakana count as one, and letters that no identity may hold (see [CheckIdentity]), such
// as full-width and mathematical ones, as a script of their own, "Unusual".
func MixedScripts(name string) (a, b string) {
	for _, r := range name {
		own := ""
		switch {
		case r < utf8.RuneSelf:
			if isLetter(r) {
				own = "Latin"
			}
		case unicode.IsLetter(r) && !unicode.Is(unicode.Lm, r): // such as the mark for a long vowel
			own = cmp.Or(scriptOf(r), "Unusual")
		}
		switch {
		case own == "" || own == a:
		case a == "":
			a = own
		default:
			return a, own
		}
	}
	return "", ""
}

// clipText returns at most the first n bytes of s, whole characters only.
func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func isLetter(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' }

// scriptOf returns the script of a letter or vowel sign beyond ASCII that may stand in an identity, "" for all others.
func scriptOf(r rune) string {
	switch {
	case latin(r) != 0:
		return "Latin"
	case unicode.Is(unicode.Latin, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r),
		!unicode.In(r, unicode.Ll, unicode.Lu, unicode.Lt, unicode.Lo, unicode.Mn, unicode.Mc),
		0xF900 <= r && r <= 0xFFFF, 0x2F800 <= r && r <= 0x2FA1F: // compatibility ideographs, presentation forms
		return ""
	case unicode.Is(unicode.Greek, r):
		if r < 0x386 || r > 0x3CE { // symbols, polytonic letters with two spellings
			return ""
		}
		return "Greek"
	case unicode.Is(unicode.Hangul, r):
		if r < 0xAC00 || r > 0xD7A3 { // parts of syllables
			return ""
		}
		return "Hangul"
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return "Han"
	case unicode.In(r, unicode.Common, unicode.Inherited):
		return ""
	}
	for name, table := range unicode.Scripts { // in any order: no letter is of two
		if unicode.Is(table, r) {
			return name
		}
	}
	return ""
}

// latinBase gives the letters of Latin-1 and Latin Extended-A (from U+00C0) and of Latin Extended Additional (from U+1E00)
// without their accents and strokes, after UnicodeData.txt; a space where there is no letter, or one that NFKC would
// replace.
var latinBase = [...]struct {
	from rune
	to   []rune
}{
	{0xC0, []rune("aaaaaaæceeeeiiiidnooooo ouuuuyþßaaaaaaæceeeeiiiidnooooo ouuuuyþyaaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii  jjkk llllll  llnnnnnn nnooooooœœrrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzz ")},
	{0x1E00, []rune("aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwy    ß aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy      ")},
}

// latin returns the letter below the accents of a Latin letter beyond ASCII, 0 for all other characters.
func latin(r rune) rune {
	for _, t := range latinBase {
		if i := int(r - t.from); r >= t.from && i < len(t.to) && t.to[i] != ' ' {
			return t.to[i]
		}
	}
	return 0
}

// SameIdentity reports whether two identities are one, or read so that a person may take one for the other: case, accents,
// spaces, punctuation and look-alikes (0 and O; 1, I, l and |; m and rn; Cyrillic and Greek letters that look Latin) do not
// tell them apart. A name without a domain is that name in every domain: "ann" and "ann@corp" are one, "ann@a" and "ann@b"
// are not.
func SameIdentity(a, b string) bool {
	if skeletonOf(a) == skeletonOf(b) {
		return true
	}
	nameA, domainA := cutDomain(a)
	nameB, domainB := cutDomain(b)
	return (domainA == "" || domainB == "") && skeletonOf(nameA) == skeletonOf(nameB)
}

func cutDomain(s string) (name, domain string) {
	if i := strings.LastIndexByte(s, '@'); i > 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}
