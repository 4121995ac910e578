package main

import (
	"bytes"
	"context"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The story runs unattended and the books agree.
func TestTheStory(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(context.Background(), nil, &out, &errs), errs.String())
	text := out.String()
	for _, line := range []string{
		`(?m)^  assign .*"seas".* OK$`,
		`(?m)^  assign .*"oceans".* FAILED$`,
		`rivers +publish +DENIED`,
		`rivers +summarise +OK`,
		`lakes +summarise +BUDGET_EXHAUSTED`,
		`seas +summarise +CANCELLED`,
		`(?m)^  rivers +closed +reached +500 +900 `,
		`(?m)^  seas +cancelled +- +300 +600 `,
		`(?m)^  report +cancelled +- +1100 +2500 `,
		`reserved for nobody any more: 0 tokens; pool research: 1100 of 2000 tokens today`,
	} {
		assert.Regexp(t, regexp.MustCompile(line), text)
	}
}

func TestArguments(t *testing.T) {
	var out, errs bytes.Buffer
	assert.Zero(t, run(context.Background(), []string{"--help"}, &out, &errs))
	assert.Equal(t, 2, run(context.Background(), []string{"x"}, &out, &errs))
}
