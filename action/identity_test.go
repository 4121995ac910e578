package action_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestCheckIdentity(t *testing.T) {
	for _, s := range []string{
		"alice", "ALICE", "Alice Doe", "o'brien@corp.example", "CORP\\alice", "auth0|5f7c8ec7", "spiffe://corp/ns/pay", "ops+night@x", "7",
		"José Müller-Łęcki", "Nguyễn Văn A", "иван", "Ελένη", "山田 たろう", "김철수", "नामदेव", "אבי",
		strings.Repeat("n", action.MaxIdentity),
	} {
		require.NoError(t, action.CheckIdentity(s), s)
	}
	for _, c := range []struct{ name, reason string }{
		{"", "empty"}, {" ", "empty to a reader"}, {" alice", "leading space"}, {"alice ", "trailing space"}, {"a  b", "two spaces"},
		{"alice\u00a0", "no-break space"}, {"a\u2003b", "em space"}, {"alice\n", "line end"}, {"alice\x00", "control"}, {"alice\x7f", "control"},
		{"alice\u200b", "zero width space"}, {"a\u2060lice", "word joiner"}, {"alice\u00ad", "soft hyphen"}, {"alice\u202e", "direction override"},
		{"alice\u034f", "grapheme joiner"}, {"alice\ufe0f", "variation selector"}, {"alice\u3164", "filler"}, {"\u3164", "filler alone"},
		{"a\u0301lice", "decomposed accent"}, {"\u1100\u1161", "decomposed syllable"}, {"\u03d2", "a symbol that looks like a letter"},
		{"\u0430lice", "a Cyrillic letter"}, {"αlice", "a Greek letter"}, {"alic\u04bd", "a Cyrillic letter that looks like none"}, {"алиcа", "a Latin letter"},
		{"\uff41lice", "full width"}, {"\U0001d41alice", "mathematical"}, {"a\u217cice", "Roman numeral"}, {"al\u2170ce", "Roman numeral"},
		{"alic\u212e", "estimated sign"}, {"\u24d0lice", "circled"}, {"\u0251lice", "Latin alpha"}, {"ﬁn", "ligature"}, {"\u017fam", "long s"},
		{"a\xffb", "not UTF-8"}, {"a\ufffdb", "replacement character"}, {"٣", "digits of another script"}, {"alice😀", "emoji"}, {"-", "no letter"},
		{strings.Repeat("n", action.MaxIdentity+1), "too long"}, {strings.Repeat("é", action.MaxIdentity), "too long in bytes"},
	} {
		require.Error(t, action.CheckIdentity(c.name), "%q: %s", c.name, c.reason)
	}
}

func TestSameIdentity(t *testing.T) {
	for _, s := range []string{"alice", "ALICE", "Alice", "al1ce", "aIice", "a|ice", "a lice", "a-lice", "a.lice", "alıce", "álice", "alice@corp"} {
		require.True(t, action.SameIdentity("alice", s), s)
		require.True(t, action.SameIdentity(s, "alice"), s)
	}
	for _, p := range [][2]string{{"сосо", "coco"}, {"ВОВ", "bob"}, {"норе", "hope"}, {"Tom", "Torn"}, {"Łukasz", "lukasz"}} {
		require.True(t, action.SameIdentity(p[0], p[1]), "%v", p)
	}
	for _, p := range [][2]string{{"alice", "bob"}, {"alice@a", "alice@b"}, {"иван", "пётр"}, {"ops1", "ops2"}, {"山田", "山本"}} {
		require.False(t, action.SameIdentity(p[0], p[1]), "%v", p)
	}
}

// An identity that passes holds nothing invisible, and upper and lower case of it are one.
func TestIdentitiesHideNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.OneOf(rapid.RuneFrom([]rune("alice -@.1|Iéжα山")), rapid.Rune()), 0, 8, -1).Draw(t, "s")
		if action.CheckIdentity(s) != nil {
			return
		}
		require.True(t, action.SameIdentity(s, strings.ToUpper(s)) || strings.ContainsAny(s, "ßŉ"), "%q", s)
		require.True(t, action.SameIdentity(s, strings.ToLower(s)), "%q", s)
		require.True(t, action.SameIdentity(s, s+" "), "%q", s)
	})
}
