package table

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fill(t *Writer) {
	t.Row("charge", 7, 0.25)
	t.Row("look-up", 1234, nil)
	t.Row("返金", 30, 1.0/3)
}

func TestTerminal(t *testing.T) {
	var b bytes.Buffer
	w := newWriter(&b, true, true, []string{"action", "runs", "p"})
	fill(w)
	require.NoError(t, w.Flush())
	assert.Equal(t, "\x1b[1maction   runs      p\x1b[0m\n"+
		"charge      7  0.250\n"+
		"look-up  1234      -\n"+
		"返金       30  0.333\n", b.String())
}

func TestPipe(t *testing.T) {
	var b bytes.Buffer
	w := New(&b, "action", "runs", "p")
	fill(w)
	require.NoError(t, w.Flush())
	assert.Equal(t, "action\truns\tp\ncharge\t7\t0.250\nlook-up\t1234\t-\n返金\t30\t0.333\n", b.String())
}

func TestFlushStartsANewTable(t *testing.T) {
	var b bytes.Buffer
	w := newWriter(&b, true, false, []string{"n"})
	w.Row("a long cell")
	require.NoError(t, w.Flush())
	w.Row(1)
	require.NoError(t, w.Flush())
	assert.Equal(t, "n\na long cell\nn\n1\n", b.String())
}

func TestRaggedRowsAndNoHeader(t *testing.T) {
	var b bytes.Buffer
	w := newWriter(&b, true, true, nil)
	w.Row("a")
	w.Row("b", "c", 1)
	w.Row()
	require.NoError(t, w.Flush())
	assert.Equal(t, "a\nb  c  1\n\n", b.String())
}

// A tool's message must neither break a column nor reach the terminal as a command.
func TestCellsAreHarmless(t *testing.T) {
	tests := []struct{ name, cell, want string }{
		{"separators", "a\tb\nc\rd", `a\tb\nc\rd`},
		{"terminal commands", "\x1b[2Jgone", `\x1b[2Jgone`},
		{"C1 commands", "\u009b2J", `\u009b2J`},
		{"reversed text", "a\u202eb", `a\u202eb`},
		{"invalid UTF-8", "a\xffb", `a\ufffdb`},
		{"letters of any script", "naïve 返金 👩‍🚀", "naïve 返金 👩‍🚀"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, terminal := range []bool{true, false} {
				var b bytes.Buffer
				w := newWriter(&b, terminal, false, []string{tt.cell})
				w.Row(errors.New(tt.cell))
				require.NoError(t, w.Flush())
				assert.Equal(t, tt.want+"\n"+tt.want+"\n", b.String())
			}
		})
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe is closed") }

func TestFlushReportsTheWritersError(t *testing.T) {
	w := New(broken{}, "a")
	require.EqualError(t, w.Flush(), "pipe is closed")
}

func TestStyled(t *testing.T) {
	env := func(pairs map[string]string) func(string) string { return func(k string) string { return pairs[k] } }
	assert.True(t, styled(env(map[string]string{"TERM": "xterm"})))
	assert.False(t, styled(env(map[string]string{"TERM": "xterm", "NO_COLOR": "1"})))
	assert.False(t, styled(env(map[string]string{"TERM": "dumb"})))
}

func TestAFileIsNoTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	assert.False(t, IsTerminal(f))
	assert.False(t, IsTerminal(&bytes.Buffer{}))
}

func TestProgress(t *testing.T) {
	t.Run("a pipe sees nothing", func(t *testing.T) {
		var b bytes.Buffer
		p := Progress(&b, 10)
		p.Describe("reading")
		p.Add(10)
		p.Done()
		p.Done()
		assert.Empty(t, b.String())
	})
	for name, total := range map[string]int64{"a terminal sees the bar go": 10, "an unknown total counts": 0} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			p := newBar(&b, total, true)
			p.Describe("reading")
			p.Add(4)
			p.Done()
			p.Add(1)
			p.Done()
			assert.Contains(t, b.String(), "reading")
			assert.True(t, strings.HasSuffix(b.String(), "\r"), "erased: %q", b.String())
		})
	}
	t.Run("the zero value shows nothing", func(t *testing.T) {
		var p Bar
		p.Add(1)
		p.Done()
	})
}
