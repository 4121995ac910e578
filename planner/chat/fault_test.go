package chat

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRefusalSaysWhatItIsAbout(t *testing.T) {
	const key = "sk-0123456789abcdef"
	tests := []struct {
		name          string
		status        int
		code, message string
		is            error
	}{
		{"OpenAI", 400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.", ErrTooLong},
		{"Anthropic", 400, "invalid_request_error", "prompt is too long: 210001 tokens > 200000 maximum", ErrTooLong},
		{"Anthropic, in bytes", 413, "request_too_large", "Request exceeds the maximum size", ErrTooLong},
		{"llama.cpp", 500, "exceed_context_size_error", "the request exceeds the available context size", ErrTooLong},
		{"inside a stream", 0, "", "context window exceeded", ErrTooLong},
		{"an error inside a stream", 0, "overloaded_error", "Overloaded", ErrCut},
		{"rate", 429, "rate_limit_error", "slow down, the context length is fine", nil},
		{"a key", 401, "", "Incorrect API key provided: " + key + ", " + key[:15] + "…", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Refusal("x", tt.status, tt.code, tt.message, key)
			assert.Equal(t, tt.is == ErrTooLong, errors.Is(err, ErrTooLong))
			assert.Equal(t, tt.is == ErrCut, errors.Is(err, ErrCut))
			assert.NotContains(t, err.Error(), key[:15])
		})
	}
	long := Refusal("x", 500, "", strings.Repeat("ü", 1000), "")
	assert.Less(t, len(long.Error()), 400)
	broken := Broken("x", errors.New("dial with "+key), key, true)
	assert.ErrorIs(t, broken, ErrCut)
	assert.NotContains(t, broken.Error(), key)
	assert.NotErrorIs(t, Broken("x", errors.New("refused"), "", false), ErrCut)
}
