package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/examples/orders/desk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told plays the story and returns it, what was printed, and the orders as the database has them.
func told(t *testing.T, a approver) (s *story, text string, rows map[string]desk.Row) {
	t.Helper()
	ctx := context.Background()
	w, err := open(ctx, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, w.close(ctx)) }()
	var out bytes.Buffer
	s, err = play(ctx, w, a, &out)
	require.NoError(t, err, out.String())
	found, err := w.db.Rows(ctx)
	require.NoError(t, err)
	rows = map[string]desk.Row{}
	for _, r := range found {
		rows[r.ID] = r
	}
	return s, out.String(), rows
}

func scripted(t *testing.T, text string) *listed {
	t.Helper()
	l, err := parseScript(text)
	require.NoError(t, err)
	return l
}

func codes(s *story) []action.Code {
	var out []action.Code
	for _, r := range s.results {
		out = append(out, r.Outcome.Code)
	}
	return out
}

func TestStory(t *testing.T) {
	s, text, rows := told(t, scripted(t, "reject:the provider is down,approve:it is back"))

	t.Run("every gate had its say", func(t *testing.T) {
		assert.Equal(t, []action.Code{
			action.NotLegal, action.OK, action.OK, action.NotLegal, // before confirming, and another order's id
			action.OK, action.OK, // the right one
			action.OK, action.OK, action.Failed, action.Failed, action.ApprovalRequired, // the provider is down
			action.ApprovalRejected, action.OK, // a person said no; the customer was told
			action.OK, action.OK, action.OK, // a person said yes
			action.BudgetExhausted,
		}, codes(s))
	})
	t.Run("the database has each effect once", func(t *testing.T) {
		assert.Equal(t, desk.Row{Order: desk.Order{ID: "ORD-1", Customer: "Ada", Cents: 4200, Status: "refunded"}, Charges: 1, Refunds: 1, Mails: 1, Gifts: 0}, rows["ORD-1"])
		assert.Equal(t, desk.Row{Order: desk.Order{ID: "ORD-2", Customer: "Grace", Cents: 9900, Status: "confirmed"}, Charges: 0, Refunds: 0, Mails: 1, Gifts: 0}, rows["ORD-2"], "neither charged nor given anything, but told")
		assert.Equal(t, desk.Row{Order: desk.Order{ID: "ORD-3", Customer: "Edsger", Cents: 1850, Status: "charged"}, Charges: 1, Refunds: 0, Mails: 0, Gifts: 0}, rows["ORD-3"])
		assert.Equal(t, 4, s.provider.Asked(), "one of ORD-1, two failures of ORD-2, one of ORD-3")
	})
	t.Run("the reason of the person reached the planner", func(t *testing.T) {
		for _, r := range s.results {
			if r.Outcome.Code == action.ApprovalRejected {
				assert.Equal(t, "the provider is down", r.Outcome.Failure.Details[action.DetailReason])
			}
		}
	})
	t.Run("the key lines are printed", func(t *testing.T) {
		at := 0
		for _, line := range []string{
			"ORDER DESK: ", "answers from --script: reject:the provider is down, approve:it is back",
			"1. WHAT IS NOT LEGAL DOES NOT EXIST", "exists: look-up-order\n",
			"charge-order ORD-1      NOT_LEGAL ", "charge-order ORD-2      NOT_LEGAL ", "charge-order (ORD-1 only)", "charge-order ORD-1      OK ",
			"2. RISK IS LEARNED", "charge-order ORD-2      FAILED             payment provider: 503", "charge-order ORD-2      APPROVAL_REQUIRED ",
			"3. A PERSON DECIDES", `? order-desk asks to run charge-order {"orderId":"ORD-2"}, for EUR 0.35`,
			"reaches the threshold 4.00: it fails ", `script   rejects: "the provider is down"`, "charge-order ORD-2      APPROVAL_REJECTED ",
			"4. ANOTHER INPUT", `script   approves: "it is back"`, "charge-order ORD-3      OK ",
			"answered from the record; payments asked of the provider: 1",
			"5. BUDGETS HOLD", "send-gift ORD-2         BUDGET_EXHAUSTED ", "refund-order ORD-1      OK ", "refund-order ORD-1      NOT_LEGAL ",
			"6. THE BOOKS", "DATABASE ", "TRUST ", "order-desk  0.", "RISK ", "charge-order     2 ", "BUDGET ", "money   EUR 5.00  EUR 0.70  EUR 0.00  EUR 4.30",
			"LEDGER ", "approval_requested", "approval_rejected", "approval_approved", "begun", "settled",
			"records in one hash chain, 0 not sealed yet", "from rejected to approved, and verifying says: ledger record ",
		} {
			i := strings.Index(text[at:], line)
			require.GreaterOrEqual(t, i, 0, "%q is missing, or out of order, in\n%s", line, text)
			at += i + len(line)
		}
	})
	t.Run("it is short, and plain in a pipe", func(t *testing.T) {
		assert.Less(t, strings.Count(text, "\n"), 80)
		assert.NotContains(t, text, "\x1b")
		assert.NotContains(t, text, " \n")
	})
}

// Whatever people answer, no order is charged or refunded twice, and nothing without consent.
func TestEveryAnswer(t *testing.T) {
	tests := []struct {
		script        string
		second, third string // status of ORD-2 and ORD-3 at the end
		asked         int    // payments asked of the provider
	}{
		{"reject,approve", "confirmed", "charged", 4},
		{"reject,reject", "confirmed", "confirmed", 3},
		{"approve,approve", "confirmed", "charged", 5}, // ORD-2 ran once under its approval, and failed
		{"approve,reject", "confirmed", "confirmed", 4},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			s, text, rows := told(t, scripted(t, tt.script))
			assert.Equal(t, tt.second, rows["ORD-2"].Status)
			assert.Equal(t, tt.third, rows["ORD-3"].Status)
			assert.Equal(t, tt.asked, s.provider.Asked())
			for id, r := range rows {
				assert.LessOrEqual(t, r.Charges, 1, id)
				assert.LessOrEqual(t, r.Refunds, 1, id)
				assert.Equal(t, r.Status == "charged" || r.Status == "refunded", r.Charges == 1, id)
			}
			assert.Contains(t, text, "0 not sealed yet")
		})
	}
}

// typist answers a prompt as soon as it is printed.
type typist struct {
	bytes.Buffer
	keys    io.Writer
	answers []string
}

func (w *typist) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("     > ")) && len(w.answers) > 0 {
		_, _ = io.WriteString(w.keys, w.answers[0]+"\n") // the other end of the pipe is closed only after the story
		w.answers = w.answers[1:]
	}
	return w.Buffer.Write(p)
}

func TestPersonAtATerminal(t *testing.T) {
	in, keys := io.Pipe()
	defer keys.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	terminal := &typist{keys: keys, answers: []string{"what?", "n", "call me first", "y"}}
	p := newPerson(ctx, "grace", in, terminal, time.Minute)
	_, text, rows := told(t, p)
	assert.Contains(t, text, `grace    rejects: "call me first"`)
	assert.Contains(t, text, "grace    approves")
	for _, shown := range []string{"? order-desk asks to run charge-order v1: ", `input     orderId = "ORD-2"`, "effect    compensatable, by refund-order\n"} {
		assert.Contains(t, text, shown, "a person sees all of it")
	}
	assert.Equal(t, "     > approve? [y/n]      > approve? [y/n]      > why not? (the agent will read it)      > approve? [y/n] ", terminal.String())
	assert.Equal(t, 1, rows["ORD-3"].Charges)
}

// Waiting too long is expiry: never consent, and not a rejection either.
func TestSilenceIsNoConsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		p := newPerson(t.Context(), "grace", in, io.Discard, time.Minute)
		s, text, rows := told(t, p)
		assert.Equal(t, 2, strings.Count(text, "says nothing: the request expires"))
		assert.NotContains(t, codes(s), action.ApprovalRejected)
		assert.Contains(t, codes(s), action.ApprovalExpired)
		assert.Zero(t, rows["ORD-2"].Charges)
		assert.Zero(t, rows["ORD-3"].Charges)
	})
}

func TestCommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answers")
	require.NoError(t, os.WriteFile(file, []byte("reject: late, but kindly\napprove\n"), 0o600))
	tests := []struct {
		name string
		args []string
		code int
		want string // part of what is printed on either output
	}{
		{"unattended", []string{"--auto-approve"}, 0, "auto-approve: the built-in approver, robin, rejects the first request with a reason, approves the second"},
		{"answers from a file", []string{"--script", "@" + file}, 0, `rejects: "late, but kindly"`},
		{"help", []string{"--help"}, 0, "--auto-approve"},
		{"nobody to ask", nil, 2, "somebody must decide, and the input is no terminal: run it on one, or with --auto-approve, or with --script"},
		{"two who decide", []string{"--auto-approve", "--script", "approve"}, 2, "exclude each other"},
		{"an unknown answer", []string{"--script", "approve,maybe"}, 2, `entry 2 is "maybe", want approve or reject`},
		{"no such file", []string{"--script", "@" + file + "x"}, 2, "no such file"},
		{"an unknown flag", []string{"--yes"}, 2, "-yes"},
		{"an argument", []string{"now"}, 2, `unexpected argument "now"`},
		{"a script that is too short", []string{"--script", "reject"}, 1, "the script answers 1 requests, and there was one more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), tt.args, strings.NewReader(""), &out, &errs)
			assert.Equal(t, tt.code, code, errs.String())
			assert.Contains(t, out.String()+errs.String(), tt.want)
		})
	}
}

// The story ends where it is told to, with nothing left running.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("the person went home")
	w, err := open(ctx, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, w.close(context.Background())) }()
	var out bytes.Buffer
	_, err = play(ctx, w, leaving{builtIn(), func() { cancel(stop) }}, &out)
	require.ErrorIs(t, err, stop)
}

// leaving is an approver who stops everything instead of answering.
type leaving struct {
	*listed
	leave func()
}

func (l leaving) answer(context.Context) (verdict, string, error) {
	l.leave()
	return silence, "", nil
}
