package action_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestVisible(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text stays", `pay "ann" 10 €, größer, 中文, हिन्दी`, `pay "ann" 10 €, größer, 中文, हिन्दी`},
		{"text that turns around", "a\u202Exe.txt", `a\u{202E}xe.txt`},
		{"isolates", "\u2066x\u2069", `\u{2066}x\u{2069}`},
		{"a zero-width space", "pay\u200Bpal", `pay\u{200B}pal`},
		{"a byte order mark", "\uFEFFx", `\u{FEFF}x`},
		{"a terminal's escape", "\x1b[2Kx", `\u{1B}[2Kx`},
		{"a carriage return that hides what stands before", "evil\rnice", `evil\u{D}nice`},
		{"a line break", "a\nb", `a\u{A}b`},
		{"a space that is none", "1\u00A0000", `1\u{A0}000`},
		{"tags", "x\U000E0041", `x\u{E0041}`},
		{"a filler letter", "\u3164x", `\u{3164}x`},
		{"braille without dots", "\u2800", `\u{2800}`},
		{"a variation selector", "x\uFE0F", `x\u{FE0F}`},
		{"private use", "\uE000", `\u{E000}`},
		{"no UTF-8", "a\xffb", `a\x{ff}b`},
		{"the replacement character itself", "a\uFFFDb", "a\uFFFDb"},
		{"a pile of marks", "x" + strings.Repeat("\u0335", 5), "x\u0335\u0335\u0335" + `\u{335}\u{335}`},
		{"a mark without a letter", "\u0335x", `\u{335}x`},
	} {
		assert.Equal(t, c.want, action.Visible(c.in), c.name)
	}
}

func TestVisible_NothingInvisibleIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := action.Visible(rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text"))
		assert.True(t, utf8.ValidString(s))
		for _, r := range s {
			assert.True(t, unicode.IsPrint(r), "%U", r)
		}
		assert.Equal(t, s, action.Visible(s), "twice is once")
	})
}

func TestBlank(t *testing.T) {
	for _, s := range []string{"", " \t\n", "\u200b\u2060", "\u3164\u2800", "\u00a0\u2003", "\u0301", "\xff", "\ufffd", "\U000e0041"} {
		assert.True(t, action.Blank(s), "%q", s)
	}
	for _, s := range []string{"x", "\u200bok", "火", "é", "!"} {
		assert.False(t, action.Blank(s), "%q", s)
	}
}
