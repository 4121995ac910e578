package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// costFlags take an amount on each axis.
func costFlags(c *cobra.Command, cost *action.Cost, money *string) {
	c.Flags().Int64Var(&cost.Tokens, "tokens", 0, "model tokens")
	c.Flags().Int64Var(&cost.Calls, "calls", 0, "executed attempts")
	c.Flags().Int64Var(&cost.Bytes, "bytes", 0, "bytes moved")
	c.Flags().DurationVar(&cost.Duration, "duration", 0, "wall time, 90s say")
	c.Flags().StringVar(money, "money", "", "money with its currency, '2.50 EUR' say")
}

// withMoney adds an amount of money as a person writes it.
func withMoney(cost action.Cost, money string) (action.Cost, error) {
	if money == "" {
		return cost, nil
	}
	amount, currency, _ := strings.Cut(money, " ")
	whole, part, _ := strings.Cut(amount, ".")
	var n int64
	if _, err := fmt.Sscanf(whole+(part + "000000")[:max(6, len(part))]+"\n", "%d\n", &n); err != nil || len(part) > 6 || currency == "" || n < 0 {
		return cost, fmt.Errorf("--money %q: want an amount with at most six decimals and a currency, '2.50 EUR' say", money)
	}
	cost.Money, cost.Currency = n, currency
	return cost, cost.Check()
}
