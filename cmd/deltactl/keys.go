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
wrapped under it any more, which is when all tasks from its time are pruned and their
subjects erased. Keep the file where the store is not, and keep a copy: what is wrapped
under a lost key is lost. Nothing here ever prints a key.`

func newKeys() *cobra.Command {
	c := &cobra.Command{
		Use: "keys", Short: "Make, rotate and list the keys of secrets", Args: cobra.NoArgs, Long: keysHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newKeysNew(), newKeysRotate(), newKeysList())
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
