package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

const eraseHelp = `Erase destroys the data keys of a subject: the name that goals give in their Subject, or
a task (agent~task) whose goal names none. Its sealed inputs, outputs and notes cannot
be read from then on, by nobody and in no copy of a ledger; ledgers stay, and verify and
fold as before. Its tasks that have not ended are cancelled. It cannot be undone. Where
it fails half-way, repeat it.

Backups of the store still hold the wrapped keys: they are erased when the backups go,
or the keys of the ring that wrapped them.`

func newErase() *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: "erase SUBJECT", Short: "Destroy what is known of a person", Args: cobra.ExactArgs(1),
		Long:    eraseHelp + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl erase customer-1042 --reason 'request of 2026-11-02'",
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			me, err := d.me(c.Context())
			if err != nil {
				return err
			}
			done, err := d.engine.Erase(c.Context(), args[0], me, reason)
			did := newDeeds(c, &f)
			if done.Keys+done.Tasks > 0 || err == nil {
				did.add(deed{Did: "erased", What: fmt.Sprintf("%d keys", done.Keys), By: me.String()})
				did.add(deed{Did: "cancelled", What: fmt.Sprintf("%d tasks", done.Tasks), By: me.String()})
			}
			return errors.Join(err, did.end())
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}
