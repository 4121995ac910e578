package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

func TestProviderCompletes(t *testing.T) {
	p := chat.Provider{Name: "acme", Env: "ACME", Home: "https://api.acme.example/v1", Like: "http://localhost:8000/v1"}
	for _, c := range []struct {
		name, url, key, model string
		home                  bool
		want                  string // part of the error
	}{
		{name: "its own servers", key: "k", model: "m", home: true},
		{name: "another server takes no key", url: "http://localhost:8000/v1", model: "m"},
		{name: "no key for its own", model: "m", want: "ACME_API_KEY"},
		{name: "its own by another path", url: "https://api.acme.example/v2", model: "m", want: "ACME_API_KEY"},
		{name: "no model", key: "k", want: "ACME_MODEL"},
		{name: "no URL", url: "localhost:8000", key: "k", model: "m", want: "http://localhost:8000/v1"},
		{name: "a password in the URL", url: "http://u:hunter2@localhost", key: "k", model: "m", want: "holds a user"},
		{name: "a key read with its line", key: "hunter2\n", model: "m", want: "line break"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("ACME_BASE_URL", c.url)
			t.Setenv("ACME_API_KEY", c.key)
			t.Setenv("ACME_MODEL", c.model)
			var url, key, model string
			home, err := p.Complete(&url, &key, &model)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), "hunter2")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.home, home)
			require.Equal(t, []string{c.key, c.model}, []string{key, model})
		})
	}
}
