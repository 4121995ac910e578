package statespace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

func TestCell(t *testing.T) {
	var c statespace.Cell
	require.Equal(t, "{}", c.String())
	one := c.Add([]string{`"b"`, `"a"`}, 1)
	two := one.Add([]string{`"b"`}, 2)
	require.Equal(t, `{"\"a\"":1,"\"b\"":1}`, one.String(), "Add changes a copy")
	require.Equal(t, `{"\"a\"":1,"\"b\"":2}`, two.String())
	require.Equal(t, `{"\"b\"":2}`, two.Without(`"a"`).String())
	back, err := statespace.ParseCell(two.String())
	require.NoError(t, err)
	require.Equal(t, two, back)
	for _, bad := range []string{"null", "[]", "{", `{"a":"b"}`} {
		_, err := statespace.ParseCell(bad)
		require.ErrorContains(t, err, "bulk cell", bad)
	}
	empty, err := statespace.ParseCell("")
	require.NoError(t, err)
	require.Empty(t, empty)
}

func TestCell_ForgetsTheOldest(t *testing.T) {
	values := make([]string, statespace.MaxBulk)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	c := statespace.Cell{"old": 1, "older": 0}.Add(values[1:], 2)
	require.Len(t, c, statespace.MaxBulk)
	require.Contains(t, c, "old")
	require.NotContains(t, c, "older")
}

func FuzzParseCell(f *testing.F) {
	f.Add(`{"\"a\"":1}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := statespace.ParseCell(text)
		if err != nil {
			return
		}
		again, err := statespace.ParseCell(c.String())
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}
