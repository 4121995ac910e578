package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/keys"
)

const keysHelp = `Keys makes and shows the file of keys that wrap the data keys in a store, see
doc/secrets.md. Workers name it in Config.Keys, deltactl in --keys or DELTA_KEYS. The
last key of the file wraps, all of them unwrap: an old key may go when nothing is
wrapped under it any more, which rewrap sees to. Keep the file where the store is not, and keep a copy: what is wrapped
under a lost key is lost. Nothing here ever prints a key.`

func newKeys() *cobra.Command {
	c := &cobra.Command{
		Use: "keys", Short: "Make, rotate and list the keys of secrets", Args: cobra.NoArgs, Long: keysHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newKeysNew(), newKeysRotate(), newKeysList(), newKeysRewrap())
	return c
}

// named makes a key; one without a name is named after the moment.
func named(id string) (keys.Key, error) {
	now := time.Now()
	if id == "" {
		id = now.UTC().Format("20060102T150405Z")
	}
	k, err := keys.NewKey(id, now)
	if err != nil {
		return k, usageError{err}
	}
	return k, nil
}

func idFlag(c *cobra.Command, id *string) {
	c.Flags().StringVar(id, "id", "", "name of the key (the time)")
}

func newKeysNew() *cobra.Command {
	var id string
	c := &cobra.Command{
		Use: "new FILE", Short: "Make a file with one key", Args: cobra.ExactArgs(1),
		Long:    "New makes a file with one new key, readable by you alone. A file that is there is not replaced.",
		Example: "  deltactl keys new /etc/delta-agents/keys",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := named(id)
			if err != nil {
				return err
			}
			s, err := keys.NewSet(k)
			if err != nil {
				return err
			}
			if err := writeNew(args[0], "", 0o600); err != nil { // claimed first: what is there may hold keys
				return err
			}
			if err := s.Write(args[0]); err != nil {
				return errors.Join(err, os.Remove(args[0]))
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "made\t%s\n", k.ID)
			return err
		},
	}
	idFlag(c, &id)
	return c
}

func newKeysRotate() *cobra.Command {
	var id string
	c := &cobra.Command{
		Use: "rotate FILE", Short: "Add a key that wraps from now on", Args: cobra.ExactArgs(1),
		Long: `Rotate adds a new key to the file, as a whole or not at all. Give the file to every
worker before any of them wraps with it: a worker that lacks the key refuses calls with
secrets in tasks whose data key it wraps, as KEY_UNAVAILABLE.`,
		Example: "  deltactl keys rotate /etc/delta-agents/keys",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := keys.Read(args[0])
			if err != nil {
				return err
			}
			k, err := named(id)
			if err != nil {
				return err
			}
			if s, err = s.With(k); err != nil {
				return usageError{err}
			}
			if err := s.Write(args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "made\t%s\n", k.ID)
			return err
		},
	}
	idFlag(c, &id)
	return c
}

const rewrapHelp = `Rewrap wraps the data keys in the store again under the last key of the file, those too
that were made before there was a file. Nothing else changes, and no call waits for it. When it
says that nothing is left, older keys may leave the file. With --limit it stops after so
many; interrupted, repeat it: what is done stays done.`

func newKeysRewrap() *cobra.Command {
	var f storeFlags
	var limit int
	c := &cobra.Command{
		Use: "rewrap", Short: "Wrap the store's data keys under the last key", Args: cobra.NoArgs,
		Long:    rewrapHelp + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl keys rewrap --keys /etc/delta-agents/keys --limit 1000",
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, _ []string) error {
			if limit < 0 {
				return usageError{errors.New("--limit is negative")}
			}
			me, err := d.me(c.Context())
			if err != nil {
				return err
			}
			done, err := d.engine.Rewrap(c.Context(), me, limit)
			did := newDeeds(c, &f)
			if done.Keys+done.Already > 0 || err == nil {
				did.add(deed{Did: "wrapped", What: fmt.Sprintf("%d keys", done.Keys), By: me.String()})
				did.add(deed{Did: "left", What: map[bool]string{true: "more", false: "none"}[done.More], By: me.String()})
			}
			return errors.Join(err, did.end())
		}),
	}
	c.Flags().IntVar(&limit, "limit", 0, "wrap at most so many (all)")
	f.add(c)
	return c
}

type keyRow struct {
	ID    string    `json:"id"`
	Made  time.Time `json:"made"`
	Wraps bool      `json:"wraps"`
}

func newKeysList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list FILE", Short: "List the keys by name", Args: cobra.ExactArgs(1),
		Long:    "List prints the names of the keys, the one that wraps last.\n\nJSON: {\"keys\": [{\"id\", \"made\", \"wraps\"}]}.",
		Example: "  deltactl keys list /etc/delta-agents/keys",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := keys.Read(args[0])
			if err != nil {
				return err
			}
			out := struct {
				Keys []keyRow `json:"keys"`
			}{[]keyRow{}}
			for i, k := range s.Keys() {
				out.Keys = append(out.Keys, keyRow{k.ID, k.Made, i == len(s.Keys())-1})
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), out)
			}
			t := table.New(c.OutOrStdout(), "id", "made", "wraps")
			for _, r := range out.Keys {
				t.Row(r.ID, r.Made.Format(time.RFC3339), map[bool]string{true: "yes", false: "no"}[r.Wraps])
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
