package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Grants is the policy that permits each agent the actions granted to it by name, whatever the input. There are no
// patterns: an agent that is absent, and one whose list is nil or empty, is permitted nothing. The zero value permits
// nobody.
type Grants struct{ of *granted }

// granted holds, for each agent and action, the reason that is given: every permitted call asks for it.
type granted struct {
	of      map[string]map[string]string
	version string
}

// NewGrants returns the grants agent → actions. The map is not kept.
func NewGrants(grants map[string][]string) Grants {
	g := &granted{of: map[string]map[string]string{}}
	h := sha256.New()
	for _, agent := range slices.Sorted(maps.Keys(grants)) {
		actions := slices.Compact(slices.Sorted(slices.Values(grants[agent])))
		if len(actions) == 0 {
			continue // none: the same as absent, in version too
		}
		set := make(map[string]string, len(actions))
		fmt.Fprintf(h, "%d:%s%d", len(agent), agent, len(actions))
		for _, a := range actions {
			set[a] = fmt.Sprintf("%s is granted %s", agent, a)
			fmt.Fprintf(h, ",%d:%s", len(a), a)
		}
		g.of[agent] = set
	}
	g.version = "grants-" + hex.EncodeToString(h.Sum(nil)[:8])
	return Grants{g}
}

// Version changes exactly when what is permitted changes.
func (g Grants) Version() string {
	if g.of == nil {
		return NewGrants(nil).of.version
	}
	return g.of.version
}

// Decide permits what was granted.
func (g Grants) Decide(r Request) (Decision, error) {
	if g.of != nil {
		if reason, ok := g.of.of[r.Agent][r.Action]; ok {
			return Decision{Permit: true, Reason: reason, Version: g.of.version}, nil
		}
	}
	return Decision{Reason: fmt.Sprintf("%s has no grant of %s", r.Agent, r.Action), Version: g.Version()}, nil
}

// Any returns the policy that permits what at least one of the policies permits and none forbids; a policy that cannot
// decide makes it deny, because it might have forbidden. This is how rules stand beside grants.
func Any(policies ...Policy) Policy {
	return combination{slices.Clone(policies), func(permits, of int) bool { return permits > 0 }}
}

// All returns the policy that permits what every one of the policies permits; of no policies, nothing.
func All(policies ...Policy) Policy {
	return combination{slices.Clone(policies), func(permits, of int) bool { return of > 0 && permits == of }}
}

type combination struct {
	of     []Policy
	enough func(permits, of int) bool
}

// Version names the rules of all that have a version.
func (c combination) Version() string {
	var all []string
	for _, p := range c.of {
		if v := VersionOf(p); v != "" {
			all = append(all, v)
		}
	}
	return strings.Join(all, "+")
}

// Decide asks every policy, so that the version does not depend on who answered first. The reasons given are of those
// that decided it, in the order of the policies.
func (c combination) Decide(r Request) (Decision, error) {
	var versions, permitted, refused, forbidden, failed, asks []string
	for i, p := range c.of {
		if p == nil {
			failed = append(failed, fmt.Sprintf("policy %d is nil", i+1))
			continue
		}
		d, err := contain(p, r)
		if d.Version != "" {
			versions = append(versions, d.Version)
		}
		if d.Ask != "" && !slices.Contains(asks, d.Ask) {
			asks = append(asks, d.Ask)
		}
		switch {
		case err != nil:
			failed = append(failed, err.Error())
		case d.Forbid:
			forbidden = append(forbidden, d.Reason)
		case d.Permit:
			permitted = append(permitted, d.Reason)
		default:
			refused = append(refused, d.Reason)
		}
	}
	out := Decision{Version: strings.Join(versions, "+"), Ask: strings.Join(asks, "; ")}
	switch {
	case len(failed) > 0:
		return out, fmt.Errorf("%s", strings.Join(failed, "; "))
	case len(forbidden) > 0:
		out.Forbid, out.Reason = true, strings.Join(forbidden, "; ")
	case c.enough(len(permitted), len(c.of)):
		out.Permit, out.Reason = true, strings.Join(permitted, "; ")
	case len(refused) > 0:
		out.Reason = strings.Join(refused, "; ")
	default:
		out.Reason = "there is no policy"
	}
	return out, nil
}
