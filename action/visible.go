package action

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stackedMarks is how many combining marks in a row may be shown as they are: living languages need no more, and a pile of
// them paints over what is next to it.
const stackedMarks = 3

// Visible returns s as it may be shown to somebody who decides by it: what a terminal or a browser would not show, or would
// let change how the rest looks, is written out as \u{…} (characters) or \x{…} (bytes that are no UTF-8). That is all
// control and format characters, line breaks included, those that reverse the direction of text, white space other than the
// plain one, blank letters, variation selectors, unassigned and private ones, and piles of combining marks. Text without any
// of these comes back as it is. In JSON the result cannot be taken for a text that spells the escape: there a backslash is
// doubled.
func Visible(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	marks := stackedMarks // a mark needs a letter to stand on
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				fmt.Fprintf(&b, `\x{%02x}`, s[i])
				marks = stackedMarks
				continue
			}
		}
		if marks++; !unicode.IsMark(r) {
			marks = 0
		}
		if marks > stackedMarks || !shown(r) {
			fmt.Fprintf(&b, `\u{%X}`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Blank reports whether s says nothing to somebody who reads it: it has no character with a look of its own but white space
// and the "…" of [Cut].
func Blank(s string) bool {
	for _, r := range s {
		if r != utf8.RuneError && r != '…' && shown(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) {
			return false
		}
	}
	return true
}

const brailleBlank = '\u2800'

// shown reports whether a character has a look of its own.
func shown(r rune) bool {
	return unicode.IsPrint(r) && r != brailleBlank && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
