package policy

import (
	"slices"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// key is where a part of a scope looks: an entity and what is in it; entities of a type; or, the zero value, anything.
type key struct {
	uid  types.EntityUID
	kind types.EntityType
}

// keys returns the keys of a scope: a request meets it only if one of them is among its own.
func keys(scope ast.IsScopeNode) []key {
	switch s := scope.(type) {
	case ast.ScopeTypeEq:
		return []key{{uid: s.Entity}}
	case ast.ScopeTypeIn:
		return []key{{uid: s.Entity}}
	case ast.ScopeTypeInSet:
		out := make([]key, 0, len(s.Entities))
		for _, e := range s.Entities {
			out = append(out, key{uid: e})
		}
		return out
	case ast.ScopeTypeIs:
		return []key{{kind: s.Type}}
	case ast.ScopeTypeIsIn:
		return []key{{uid: s.Entity}}
	}
	return []key{{}}
}

// index finds the policies whose scope may hold a request, principal by action by resource. What it does not find is false
// by its scope alone, and a scope cannot fail: evaluating the rest is evaluating all.
type index map[key]map[key]map[key][]int

func newIndex(rules []*rule) index {
	ix := index{}
	for n, r := range rules {
		for _, p := range r.principals {
			if ix[p] == nil {
				ix[p] = map[key]map[key][]int{}
			}
			for _, a := range r.actions {
				if ix[p][a] == nil {
					ix[p][a] = map[key][]int{}
				}
				for _, c := range r.resources {
					ix[p][a][c] = append(ix[p][a][c], n)
				}
			}
		}
	}
	return ix
}

// find returns the places of the policies that may hold the request, in order, each once.
func (ix index) find(principal, act, resource []key) []int {
	var out []int
	for _, p := range principal {
		byAction := ix[p]
		if byAction == nil {
			continue
		}
		for _, a := range act {
			byResource := byAction[a]
			if byResource == nil {
				continue
			}
			for _, r := range resource {
				out = append(out, byResource[r]...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// meets returns the keys under which an entity is found: anything, its type, itself and what it is in.
func (b *Bundle) meets(uid types.EntityUID) []key {
	out := []key{{}, {kind: uid.Type}, {uid: uid}}
	for at := 2; at < len(out); at++ {
		for _, p := range b.parents[out[at].uid] {
			if k := (key{uid: p}); !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}
