package redisstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// Each way to a real server: it carries transactions, or the error says what is wrong with it.
func TestWaysToAServer(t *testing.T) {
	t.Parallel()
	open, asking := redistest.StartTLS(t, false), redistest.StartTLS(t, true)
	for _, c := range []struct {
		name   string
		config redisstore.Config
		want   string // part of the error; "" where it works
	}{
		{"a unix socket", redisstore.Config{URL: "unix://" + open.Socket}, ""},
		{"another database by a socket", redisstore.Config{URL: "unix://" + open.Socket + "?db=3"}, ""},
		{"a socket that is not there", redisstore.Config{URL: "unix://" + open.Socket + "x"}, "no such file"},
		{"TLS, an authority of ours", redisstore.Config{URL: "rediss://" + open.Secure, CAFile: open.CA}, ""},
		{"TLS, by the name of a certificate", redisstore.Config{URL: "rediss://" + open.Secure, CAFile: open.CA, ServerName: open.Domain}, ""},
		{"TLS, another name", redisstore.Config{URL: "rediss://" + open.Secure, CAFile: open.CA, ServerName: "elsewhere.example"}, "elsewhere.example"},
		{"TLS, an authority nobody knows", redisstore.Config{URL: "rediss://" + open.Secure}, "unknown authority"},
		{"TLS, another authority", redisstore.Config{URL: "rediss://" + open.Secure, CAFile: open.Other}, "unknown authority"},
		{"TLS to where there is none", redisstore.Config{URL: "rediss://" + open.Addr, CAFile: open.CA}, "not rediss"},
		{"none to where there is TLS", redisstore.Config{URL: "redis://" + open.Secure}, "begins with rediss"},
		{"a client's certificate", redisstore.Config{URL: "rediss://" + asking.Secure, CAFile: asking.CA, CertFile: asking.Cert, KeyFile: asking.Key}, ""},
		{"no client's certificate", redisstore.Config{URL: "rediss://" + asking.Secure, CAFile: asking.CA}, "certificate required"},
		{"a certificate without its key", redisstore.Config{URL: "rediss://" + asking.Secure, CAFile: asking.CA, CertFile: asking.Cert}, "client certificate"},
		{"no authority in the file", redisstore.Config{URL: "rediss://" + asking.Secure, CAFile: asking.Key}, "holds no certificate"},
		{"no such file", redisstore.Config{URL: "rediss://" + asking.Secure, CAFile: asking.CA + "x"}, "certificate authority"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.Prefix = strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "-"), ",", "")
			s, err := redisstore.Open(context.Background(), c.config)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			defer func() { assert.NoError(t, s.Close()) }()
			r, err := s.Apply(context.Background(), put("a", "x"))
			require.NoError(t, err)
			require.True(t, r.OK)
			rs, err := s.Records(context.Background(), "a", "t", 1, 9)
			require.NoError(t, err)
			assert.Len(t, rs, 1)
		})
	}
}
