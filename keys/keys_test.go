package keys_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/keys"
)

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func key(t require.TestingT, id string) keys.Key {
	k, err := keys.NewKey(id, day)
	require.NoError(t, err)
	return k
}

func set(t require.TestingT, all ...keys.Key) *keys.Set {
	s, err := keys.NewSet(all...)
	require.NoError(t, err)
	return s
}

// TestNewestWrapsAllUnwrap: after a rotation the new key wraps and the old one still unwraps; without the old one the error
// says which is missing.
func TestNewestWrapsAllUnwrap(t *testing.T) {
	ctx, a, b := t.Context(), key(t, "a"), key(t, "b")
	old := set(t, a)
	wrapped, err := old.Wrap(ctx, keys.NewData(), "desk")
	require.NoError(t, err)
	both, err := old.With(b)
	require.NoError(t, err)
	raw, err := both.Unwrap(ctx, wrapped, "desk")
	require.NoError(t, err)
	again, err := both.Wrap(ctx, raw, "desk")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(again, "b:"))
	got, err := set(t, b).Unwrap(ctx, again, "desk")
	require.NoError(t, err)
	assert.Equal(t, raw, got)

	_, err = set(t, b).Unwrap(ctx, wrapped, "desk")
	require.ErrorIs(t, err, keys.ErrNoKey)
	assert.Contains(t, err.Error(), `"a"`)
	_, err = both.Unwrap(ctx, wrapped, "attic")
	require.ErrorIs(t, err, keys.ErrSealed, "it was wrapped for another place")
	_, err = set(t, key(t, "a")).Unwrap(ctx, wrapped, "desk")
	require.ErrorIs(t, err, keys.ErrSealed, "another key of that name")
}

// TestSealedIsForOnePlace: what was sealed opens for its place under its key, and is an error for any other and after any
// change.
func TestSealedIsForOnePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := keys.NewData()
		d, err := keys.DataOf(raw)
		require.NoError(t, err)
		same, err := keys.DataOf(raw)
		require.NoError(t, err)
		other, err := keys.DataOf(keys.NewData())
		require.NoError(t, err)
		text, about := rapid.String().Draw(t, "text"), rapid.String().Draw(t, "about")
		sealed := d.Seal(text, about)
		got, err := same.Open(sealed, about)
		require.NoError(t, err)
		assert.Equal(t, text, got)
		assert.NotEqual(t, sealed, d.Seal(text, about), "equal texts do not look equal")
		alike := d.SealAlike(text, about)
		assert.Equal(t, alike, same.SealAlike(text, about))
		got, err = d.Open(alike, about)
		require.NoError(t, err)
		assert.Equal(t, text, got)
		_, err = d.Open(sealed, about+"x")
		require.ErrorIs(t, err, keys.ErrSealed)
		_, err = other.Open(sealed, about)
		require.ErrorIs(t, err, keys.ErrSealed)
		at := rapid.IntRange(0, len(sealed)-2).Draw(t, "at") // the last character holds bits that do not count
		flipped := []byte(sealed)
		flipped[at] ^= 1
		_, err = d.Open(string(flipped), about)
		require.Error(t, err)
		_, err = d.Open(rapid.String().Draw(t, "anything"), about)
		require.ErrorIs(t, err, keys.ErrSealed)
	})
}

// TestDigests: equal values have equal digests under one key, and others under another; parts cannot be shifted.
func TestDigests(t *testing.T) {
	d, err := keys.DataOf(keys.NewData())
	require.NoError(t, err)
	other, err := keys.DataOf(keys.NewData())
	require.NoError(t, err)
	assert.Equal(t, d.Digest("4111"), d.Digest("4111"))
	assert.NotEqual(t, d.Digest("4111"), d.Digest("4112"))
	assert.NotEqual(t, d.Digest("4111"), other.Digest("4111"))
	assert.Regexp(t, "^hmac:"+d.ID()+":[0-9a-f]{64}$", d.Digest(""))
	assert.NotEqual(t, d.Sum("a", "b", "c"), d.Sum("a", "bc"))
	assert.NotEqual(t, d.Sum("a", "b"), d.Sum("b", "a"))
	_, err = keys.DataOf([]byte("short"))
	assert.Error(t, err)
}

// TestFile: a ring is written and read as it was, by its owner alone, and nothing shows a key.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a := key(t, "2026-03")
	s := set(t, a)
	require.NoError(t, s.Write(path))
	got, err := keys.Read(path)
	require.NoError(t, err)
	assert.Equal(t, s, got)
	rotated, err := got.With(key(t, "2026-04"))
	require.NoError(t, err)
	require.NoError(t, rotated.Write(path))
	got, err = keys.Read(path)
	require.NoError(t, err)
	require.Len(t, got.Keys(), 2)
	assert.Equal(t, "2026-04", got.Keys()[1].ID)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	secret := strings.Fields(strings.Split(string(text), "\n")[1])[2]
	for _, shown := range []string{fmt.Sprint(got), fmt.Sprintf("%v %+v %#v", got, got, got), fmt.Sprintf("%v %+v %#v", a, a, a)} {
		assert.NotContains(t, shown, secret)
		assert.Contains(t, shown, "2026-03")
		assert.NotContains(t, shown, "0x")
	}
	require.NoError(t, os.Chmod(path, 0o604))
	_, err = keys.Read(path)
	require.ErrorIs(t, err, keys.ErrExposed)
	_, err = keys.Read(filepath.Dir(path))
	require.Error(t, err)
}

// TestParseErrors: each says what is wrong and quotes no key.
func TestParseErrors(t *testing.T) {
	good := "k 2026-03-01T00:00:00Z AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	for _, c := range []struct{ name, text, says string }{
		{"nothing", "# no key\n", "needs a key"},
		{"twice", good + "\n" + good, "two keys"},
		{"no time", strings.Replace(good, "2026-03-01T00:00:00Z ", "", 1), "2 fields"},
		{"a time that is none", strings.Replace(good, "2026", "soon", 1), "RFC 3339"},
		{"too short", good[:len(good)-8], "32 bytes"},
		{"all zero", "k 2026-03-01T00:00:00Z AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "empty"},
		{"a name that is none", strings.Replace(good, "k ", "~ ", 1), "name"},
	} {
		_, err := keys.Parse(strings.NewReader(c.text))
		require.Error(t, err, c.name)
		assert.Contains(t, err.Error(), c.says, c.name)
		assert.NotContains(t, err.Error(), "AQID", c.name)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("k 2026-03-01T00:00:00Z AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := keys.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "keys")
		require.NoError(t, s.Write(path))
		again, err := keys.Read(path)
		require.NoError(t, err)
		assert.Len(t, again.Keys(), len(s.Keys()))
	})
}
