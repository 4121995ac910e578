package main

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/sandbox"
)

//go:embed pay.sh
var pay string

// bank is where money moves: a folder with books, and a tool that writes into them. The tool runs confined: it finds that
// folder, the programs of the system, and nothing else; no network, no home, no settings.
type bank struct {
	dir string
	box *sandbox.Sandbox
}

// openBank makes the books. With confined false the tool runs without a sandbox, which is logged.
func openBank(confined bool, log *slog.Logger) (*bank, error) {
	dir, err := os.MkdirTemp("", "refund-books-")
	if err != nil {
		return nil, fmt.Errorf("books: %w", err)
	}
	cfg := sandbox.Config{
		Binds:  []sandbox.Bind{{Source: dir, Writable: true}},
		Limits: sandbox.Limits{Time: 10 * time.Second, Pids: 16, Tmp: 1 << 20, FileSize: 1 << 20, Output: 4 << 10},
		Log:    log,
	}
	if !confined {
		cfg.None = "--no-sandbox was given"
	}
	// As root the tool runs under an id of its own, which has to be able to write the books.
	err = os.Chmod(dir, 0o777) //nolint:gosec // it holds nothing but what the tool writes
	if err != nil {
		return nil, errors.Join(fmt.Errorf("books: %w", err), os.RemoveAll(dir))
	}
	box, err := sandbox.New(cfg)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &bank{dir, box}, nil
}

// tool is the program that books a payment of a kind.
func (b *bank) tool(kind string) *sandbox.Command {
	return b.box.Command("/bin/sh", "-c", pay, "pay", kind, b.file())
}

func (b *bank) file() string { return filepath.Join(b.dir, "payments") }

// books returns what was booked, a payment in each line.
func (b *bank) books() (string, error) {
	text, err := os.ReadFile(b.file())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

func (b *bank) close() error { return os.RemoveAll(b.dir) }

const payment = `{"type": "object", "required": ["orderId", "amount"], "additionalProperties": false, "properties": {
	"orderId": {"type": "string", "pattern": "^ORD-[0-9]+$"}, "amount": {"type": "integer", "minimum": 1}}}`

type mail struct {
	Order   string `json:"orderId"`
	Receipt string `json:"receipt"`
}

// clerk is the agent on whose behalf the workflow acts. Where the mail server is down nobody is told anything.
func (b *bank) clerk(mailDown bool) *delta.Agent {
	back := delta.DefineRaw("charge-back", []byte(payment), b.tool("back").Do).
		Describe("Give an order's money back").Risk(2).Effect(action.Compensatable).UndoneBy("charge").MustBuild()
	charge := delta.DefineRaw("charge", []byte(payment), b.tool("charge").Do).
		Describe("Charge an order").Risk(2).Effect(action.Compensatable).MustBuild()
	send := delta.Define("send-mail", func(_ *delta.Context, m mail) mo.Result[string] {
		if mailDown {
			return mo.Err[string](errors.New("the mail server is down"))
		}
		return mo.Ok("sent receipt " + m.Receipt)
	}).Describe("Tell a customer about a refund").Risk(1).Effect(action.Idempotent).MustBuild()
	return delta.NewAgent("refund-desk").Grant(back, charge, send).MayDelegate(send).MustBuild()
}
