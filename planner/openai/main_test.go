package openai

import (
	"encoding/json"
	"testing"

	api "github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func chunk(t *testing.T, s string) (c api.ChatCompletionChunk) {
	require.NoError(t, json.Unmarshal([]byte(s), &c))
	return c
}
