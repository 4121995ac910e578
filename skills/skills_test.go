package skills

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const good = "---\nname: refunds\ndescription: How refunds are decided.\n---\nAsk first.\n"

// write makes a file and its folders.
func write(t *testing.T, text string, at ...string) {
	t.Helper()
	name := filepath.Join(at...)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, reason, text, fault string }{
		{"whole", "every field of the format is read",
			"---\nname: a-1\ndescription: D\nlicense: MIT\ncompatibility: needs git\nallowed-tools: Read Bash\nmetadata:\n  author: x\n---\nB", ""},
		{"windows", "line ends and a byte order mark are the editor's", "\ufeff---\r\nname: a\r\ndescription: D\r\n---\r\nB\r\n", ""},
		{"list of tools", "both spellings are in use", "---\nname: a\ndescription: D\nallowed-tools: [Read, Bash]\n---\nB", ""},
		{"unknown field", "other readers have their own", "---\nname: a\ndescription: D\nmodel: x\n---\nB", ""},
		{"dashes in the text", "only the first two count", "---\nname: a\ndescription: D\n---\nB\n---\nC", ""},
		{"no front matter", "the way out is said", "# Refunds\n", `does not begin with a front matter`},
		{"empty", "there is nothing to read", "", `does not begin with a front matter`},
		{"open", "half a front matter is none", "---\nname: a\n", `does not end`},
		{"endless", "what is read has a limit", "---\n" + strings.Repeat("a: b\n", MaxFront), `does not end`},
		{"no name", "nobody could ask for it", "---\ndescription: D\n---\nB", `name:`},
		{"bad name", "a name is not a path", "---\nname: ../a\ndescription: D\n---\nB", `lower-case letters`},
		{"no description", "nobody would know when to use it", "---\nname: a\n---\nB", `description is missing`},
		{"long description", "it is read for every skill", "---\nname: a\ndescription: " + strings.Repeat("x", 1025) + "\n---\nB", `1025 characters`},
		{"no text", "a skill says something", "---\nname: a\ndescription: D\n---\n \n", `no text`},
		{"not YAML", "where is said", "---\nname: [\n---\nB", `not YAML`},
		{"twice", "which one counts would be a guess", "---\nname: a\nname: b\ndescription: D\n---\nB", `already defined`},
		{"not UTF-8", "a planner reads text", "---\nname: a\ndescription: D\n---\n\xff", `not UTF-8`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse([]byte(c.text), false)
			if c.fault == "" {
				require.NoError(t, err, c.reason)
				assert.NotEmpty(t, s.Body)
				return
			}
			assert.ErrorContains(t, err, c.fault, c.reason)
		})
	}
}

func TestMissingFoldersAreNamedWithTheWayOut(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, err, "create the folder")
	file := filepath.Join(t.TempDir(), "file")
	write(t, "x", file)
	_, err = Open(file)
	assert.ErrorContains(t, err, "not a folder")
	_, err = (*Library)(nil).Read("refunds")
	assert.ErrorIs(t, err, ErrNotFound)
	assert.ErrorContains(t, err, "skills.Open")
}

// A name that a model made up never becomes a path, and no link leads out of the skill's own folder.
func TestNothingOutsideASkillIsRead(t *testing.T) {
	base := t.TempDir()
	write(t, good, base, "skills", "refunds", File)
	write(t, "limits", base, "skills", "refunds", "references", "limits.md")
	write(t, strings.ReplaceAll(good, "refunds", "other"), base, "skills", "other", File)
	write(t, "secret", base, "secret")
	in := func(name string) string { return filepath.Join(base, "skills", "refunds", name) }
	require.NoError(t, os.Symlink("../../secret", in("out")))
	require.NoError(t, os.Symlink(filepath.Join(base, "secret"), in("absolute")))
	require.NoError(t, os.Symlink("../other/"+File, in("sideways")))
	require.NoError(t, os.Symlink("references/limits.md", in("inside")))
	require.NoError(t, os.Symlink("../..", filepath.Join(base, "skills", "up")))
	require.NoError(t, syscall.Mkfifo(in("pipe"), 0o600))
	l, err := Open(filepath.Join(base, "skills"))
	require.NoError(t, err)

	for _, name := range []string{"out", "absolute", "sideways", "../other/" + File, "/etc/passwd", "", ".", "references", "references/../../../secret", `..\other`, "pipe", "none", "a\x00b"} {
		_, err := l.ReadFile("refunds", name)
		assert.Error(t, err, "%q", name)
		assert.NotContains(t, err.Error(), "secret\n")
	}
	for _, name := range []string{"inside", "references/limits.md"} {
		text, err := l.ReadFile("refunds", name)
		require.NoError(t, err, name)
		assert.Equal(t, "limits", string(text))
	}
	for _, name := range []string{"..", ".", "", "up", "refunds/references", "refunds/../other", "/refunds", "Refunds", "refunds\x00"} {
		_, err := l.Read(name)
		assert.ErrorIs(t, err, ErrNotFound, "%q", name)
	}
	files, err := l.Files("refunds")
	require.NoError(t, err)
	assert.Equal(t, []string{"references/limits.md"}, files)
	list, err := l.List()
	require.NoError(t, err)
	assert.Len(t, list, 2)
}

// Listing reads front matters; what is wrong behind them is said when the skill is read.
func TestSkillsAreReadOnUse(t *testing.T) {
	base := t.TempDir()
	write(t, good, base, "refunds", File)
	write(t, strings.Replace(good, "Ask first.\n", "\xff", 1), base, "broken", File)
	write(t, "no front matter", base, "plain", File)
	require.NoError(t, os.Mkdir(filepath.Join(base, "empty"), 0o700))
	l, err := Open(base)
	require.NoError(t, err)

	list, err := l.List()
	assert.Equal(t, []Info{{Name: "refunds", Description: "How refunds are decided."}}, list)
	require.ErrorContains(t, err, filepath.Join(base, "plain", File), "the file is named")
	require.ErrorContains(t, err, "name of its folder", "a copied folder is found out")

	write(t, strings.Replace(good, "Ask first.", "Ask twice.", 1), base, "refunds", File)
	s, err := l.Read("refunds")
	require.NoError(t, err)
	assert.Equal(t, "Ask twice.", s.Body, "what lies there now counts")

	write(t, good+strings.Repeat("x", MaxText), base, "refunds", File)
	_, err = l.Read("refunds")
	assert.ErrorContains(t, err, "at most", "half an instruction is another instruction")
}

func TestTwoOfOneNameAreAnError(t *testing.T) {
	one := fstest.MapFS{"refunds/" + File: {Data: []byte(good)}}
	_, err := New(one, one).Read("refunds")
	assert.ErrorContains(t, err, "rename or remove one")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("---\nname: a\nallowed-tools: {a: b}\nmetadata: &a {x: *a}\n---\nB"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text, false)
		if err != nil {
			return
		}
		require.NoError(t, CheckName(s.Name))
		assert.NotEmpty(t, s.Description)
		front, err := Parse(text, true)
		require.NoError(t, err, "what can be read can be listed")
		assert.Equal(t, s.Info, front.Info)
	})
}

// What a link stands for lies elsewhere: in a file system that follows links it is not read, wherever it leads.
func TestLinksAreNotFollowed(t *testing.T) {
	base := t.TempDir()
	write(t, good, base, "in", "refunds", File)
	write(t, "a secret", base, "out.md")
	write(t, strings.Replace(good, "refunds", "other", 1), base, "elsewhere", File)
	require.NoError(t, os.Symlink(filepath.Join(base, "out.md"), filepath.Join(base, "in", "refunds", "limits.md")))
	require.NoError(t, os.Symlink(base, filepath.Join(base, "in", "refunds", "up")))
	require.NoError(t, os.Symlink(filepath.Join(base, "elsewhere"), filepath.Join(base, "in", "other")))
	l := New(os.DirFS(filepath.Join(base, "in")))
	_, err := l.Read("refunds")
	require.NoError(t, err)
	for _, name := range []string{"limits.md", "up/out.md"} {
		_, err := l.ReadFile("refunds", name)
		require.ErrorContains(t, err, "link", name)
	}
	_, err = l.Read("other")
	require.ErrorIs(t, err, ErrNotFound, "nor is a skill's folder a link")
}
