package delta

import (
	"slices"

	"github.com/seed-ab2cfece/delta-agents/schema"
)

// same reports whether two declarations are of one action: the same value, or built alike in everything that a gate looks
// at. Else a child would call under its parent's grant what the parent itself may not: an action of that name that asks
// nobody. Of functions nobody can tell: who builds an action alike says that it does the same.
func (d *declaration) same(other *declaration) bool {
	if d == other || d == nil || other == nil {
		return d == other && d != nil
	}
	return d.name == other.name && d.version == other.version && alikeSchemas(d.in, other.in) && alikeSchemas(d.out, other.out) &&
		d.governedAs(other) && d.bornAs(other) && slices.EqualFunc(d.needs, other.needs, alikeNeeds)
}

// governedAs compares what gates go by.
func (d *declaration) governedAs(other *declaration) bool {
	a, b := d.compiled, other.compiled
	return a.Risk == b.Risk && slices.Equal(a.Rules, b.Rules) && slices.Equal(a.Tags, b.Tags) &&
		a.Approve == b.Approve && a.UntilTrust == b.UntilTrust && a.Quorum.Equal(b.Quorum) &&
		a.Effect == b.Effect && a.Keyed == b.Keyed && a.UndoneBy == b.UndoneBy &&
		a.Estimate == b.Estimate && a.Maximum == b.Maximum && a.Priced == b.Priced && a.Throttle == b.Throttle && slices.Equal(a.Context, b.Context)
}

// bornAs compares what runs beside the function, as far as it can be told apart.
func (d *declaration) bornAs(other *declaration) bool {
	return d.tool == other.tool && d.toolHash == other.toolHash && (d.vet == nil) == (other.vet == nil) && d.retries == other.retries &&
		slices.Equal(d.tools, other.tools) && len(d.hooks) == len(other.hooks)
}

func alikeSchemas(a, b *schema.Schema) bool {
	if a == nil || b == nil {
		return a == b
	}
	return string(a.JSON()) == string(b.JSON())
}

func alikeNeeds(a, b Pre) bool {
	return a.name == b.name && a.consumed == b.consumed && a.within == b.within && a.across == b.across && slices.Equal(a.binds, b.binds)
}
