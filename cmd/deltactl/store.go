package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/keys"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

const storeHelp = `

The store is --store URL or DELTA_STORE: redis://host:6379/0, rediss://…,
unix:///path?db=0, redis+cluster://h1,h2, redis+sentinel://h1,h2/name/0. Its
password is best given in DELTA_STORE_PASSWORD, or in a file that --password-file
or DELTA_STORE_PASSWORD_FILE names; it is never printed. Where data keys are wrapped,
--keys or DELTA_KEYS names the file of keys, see deltactl keys.`

// storeFlags say which store a command looks into.
type storeFlags struct {
	c            redisstore.Config
	passwordFile string
	operators    string
	keys         string
	json         bool
	risk         risk.Config // of the estimator, where it matters
}

func (f *storeFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.c.URL, "store", "", "URL of the store (DELTA_STORE)")
	fl.StringVar(&f.c.Prefix, "prefix", "", `prefix of its keys (DELTA_PREFIX, "delta")`)
	fl.StringVar(&f.c.User, "user", "", "user of the store (DELTA_STORE_USER)")
	fl.StringVar(&f.passwordFile, "password-file", "", "file with the password (DELTA_STORE_PASSWORD_FILE)")
	fl.StringVar(&f.c.CAFile, "ca-file", "", "PEM file of who signs the server's certificate")
	fl.StringVar(&f.c.CertFile, "cert-file", "", "PEM file of the client's certificate")
	fl.StringVar(&f.c.KeyFile, "key-file", "", "PEM file of the client's key")
	fl.StringVar(&f.c.ServerName, "server-name", "", "name that the server's certificate must be for, where it is not the host")
	fl.StringVar(&f.operators, "operators", "", "file that lists operators (DELTA_OPERATORS, "+defaultOperators+")")
	fl.StringVar(&f.keys, "keys", "", "file of the keys that wrap data keys (DELTA_KEYS)")
	fl.BoolVar(&f.json, "json", false, "print JSON")
}

// config fills in what the environment says.
func (f *storeFlags) config() (redisstore.Config, error) {
	c := f.c
	for _, v := range []struct {
		field *string
		name  string
	}{{&c.URL, "DELTA_STORE"}, {&c.Prefix, "DELTA_PREFIX"}, {&c.User, "DELTA_STORE_USER"}, {&f.passwordFile, "DELTA_STORE_PASSWORD_FILE"},
		{&c.SentinelUser, "DELTA_SENTINEL_USER"}, {&c.SentinelPassword, "DELTA_SENTINEL_PASSWORD"}} {
		if *v.field == "" {
			*v.field = os.Getenv(v.name)
		}
	}
	if c.URL == "" {
		return c, usageError{errors.New("which store? give --store URL, or set DELTA_STORE")}
	}
	c.Password = os.Getenv("DELTA_STORE_PASSWORD")
	if f.passwordFile != "" {
		text, err := os.ReadFile(f.passwordFile)
		if err != nil {
			return c, fmt.Errorf("password: %w", err)
		}
		c.Password = strings.TrimRight(string(text), "\r\n")
	}
	return c, nil
}

func (f *storeFlags) openStore(ctx context.Context) (*redisstore.Store, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	redisstore.Quiet()
	s, err := redisstore.Open(ctx, c)
	if err != nil {
		return nil, coded{exitUnreachable, fmt.Errorf("open the store: %w", err)}
	}
	return s, nil
}

// desk is an engine without any functions on a store, for whoever operates it.
type desk struct {
	store  *redisstore.Store
	engine *delta.Engine
	office office
	at     string // which part of the store it looks into, " under the prefix x", where that is not the usual one
}

func (f *storeFlags) open(ctx context.Context, stderr io.Writer) (*desk, error) {
	ring, err := f.ring()
	if err != nil {
		return nil, err
	}
	s, err := f.openStore(ctx)
	if err != nil {
		return nil, err
	}
	o := readOffice(f.operators)
	e, err := delta.New(delta.Config{
		Store: s, Keys: ring, Authenticator: delta.VoucherFunc(osUser), Operators: o.operators, Risk: f.risk,
		Log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	d := &desk{store: s, engine: e, office: o}
	if prefix := cmp.Or(f.c.Prefix, os.Getenv("DELTA_PREFIX")); prefix != "" {
		d.at = fmt.Sprintf(" under the prefix %q", prefix)
	}
	return d, nil
}

// ring is the file of keys, nil where none is named.
func (f *storeFlags) ring() (keys.Ring, error) {
	path := cmp.Or(f.keys, os.Getenv("DELTA_KEYS"))
	if path == "" {
		return nil, nil
	}
	s, err := keys.Read(path)
	if err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

// patience is how long closing may take.
const patience = 5 * time.Second

func (d *desk) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return errors.Join(d.engine.Close(ctx), d.store.Close())
}

func (d *desk) me(ctx context.Context) (delta.Identity, error) {
	return d.engine.Authenticate(ctx, nil)
}

// pageOf is how many agents are read from the index at a time.
const pageOf = 500

// agents calls f for the agents of the store by name, after the given one, until it says that it has enough.
func (d *desk) agents(ctx context.Context, after string, f func(name string) (more bool, err error)) error {
	for {
		names, err := d.engine.Agents(ctx, after, pageOf)
		if err != nil {
			return err
		}
		for _, name := range names {
			after = name
			if err := d.engine.Adopt(ctx, name); errors.Is(err, delta.ErrNoAgent) {
				continue // listed, and nothing of it is left
			} else if err != nil {
				return err
			}
			if more, err := f(name); err != nil || !more {
				return err
			}
		}
		if len(names) < pageOf {
			return nil
		}
	}
}

// know makes an agent known, and says in an operator's words that there is none.
func (d *desk) know(ctx context.Context, name string) error {
	err := d.engine.Adopt(ctx, name)
	switch {
	case errors.Is(err, delta.ErrNoAgent):
		return coded{exitNotFound, fmt.Errorf("there is no agent %q in the store%s; deltactl trust lists those there are, each with the first task that it was given", name, d.at)}
	case name == "":
		return usageError{errors.New("the name of an agent is empty")}
	}
	return err
}

// adopt makes one agent known, or all.
func (d *desk) adopt(ctx context.Context, name string) error {
	if name != "" {
		return d.know(ctx, name)
	}
	return d.agents(ctx, "", func(string) (bool, error) { return true, nil })
}

// task opens a task by "agent~task".
func (d *desk) task(ctx context.Context, id string) (*delta.Task, error) {
	agent, _, ok := strings.Cut(id, "~")
	if !ok {
		return nil, usageError{fmt.Errorf("task %q: want agent~task", id)}
	}
	if err := d.know(ctx, agent); err != nil {
		return nil, err
	}
	t, err := d.engine.Open(ctx, id)
	if errors.Is(err, delta.ErrNoTask) {
		return nil, coded{exitNotFound, fmt.Errorf("there is no task %s in the store, or not any more; deltactl tasks list, with --ended too, lists those there are", id)}
	}
	return t, err
}

// onDesk makes a command of what is done with a store.
func onDesk(f *storeFlags, do func(c *cobra.Command, d *desk, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		d, err := f.open(c.Context(), c.ErrOrStderr())
		if err != nil {
			return err
		}
		return errors.Join(d.office.explain(do(c, d, args)), d.close(c.Context()))
	}
}

// onTask is onDesk for what somebody, who is known, does with the task that the first argument names.
func onTask(f *storeFlags, do func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error) func(*cobra.Command, []string) error {
	return onDesk(f, func(c *cobra.Command, d *desk, args []string) error {
		me, err := d.me(c.Context())
		if err != nil {
			return err
		}
		t, err := d.task(c.Context(), args[0])
		if err != nil {
			return err
		}
		return do(c, d, me, t, args)
	})
}

// rowFlags bound what a listing prints.
type rowFlags struct {
	limit int
	after string
	sort  string
	by    []string // what it can be sorted by; the first is the order in which the store has it
}

const defaultLimit = 50

func (f *rowFlags) add(c *cobra.Command, by ...string) {
	f.by = by
	c.Flags().IntVar(&f.limit, "limit", defaultLimit, "rows to print at most")
	c.Flags().StringVar(&f.after, "after", "", "go on behind what the last page ended with")
	if len(by) > 1 {
		c.Flags().StringVar(&f.sort, "sort", by[0], "sort by "+strings.Join(by, ", ")+"; any but "+by[0]+" reads all there is")
	}
}

func (f *rowFlags) check() error {
	if f.limit < 1 || f.limit > delta.MaxTasks {
		return usageError{fmt.Errorf("--limit is %d, want 1 to %d", f.limit, delta.MaxTasks)}
	}
	if f.sort == "" || f.sort == f.by[0] {
		return nil
	}
	for _, by := range f.by {
		if f.sort == by && f.after != "" {
			return usageError{fmt.Errorf("--after goes with the order of --sort %s alone", f.by[0])}
		} else if f.sort == by {
			return nil
		}
	}
	return usageError{fmt.Errorf("--sort %s: want one of %s", f.sort, strings.Join(f.by, ", "))}
}

// natural reports whether rows are wanted as the store has them.
func (f *rowFlags) natural() bool { return f.sort == "" || f.sort == f.by[0] }

// behind is where a page begins in a list that is read as a whole.
func behind[T any](all []T, after string, id func(T) string) (int, error) {
	if after == "" {
		return 0, nil
	}
	for i, x := range all {
		if id(x) == after {
			return i + 1, nil
		}
	}
	return 0, usageError{fmt.Errorf("--after %s: it is not in the list any more; begin anew without", after)}
}

// more tells, where only a person sees it, how to go on.
func more(c *cobra.Command, next string) {
	if next != "" {
		fmt.Fprintf(c.ErrOrStderr(), "There are more: --after %s\n", next)
	}
}
