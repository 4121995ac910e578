package txn

// few is up to how many clauses comparing each with each is cheapest.
const few = 24

// places is the size of the table by which more clauses are compared, a power of two.
const places = 512

// twice returns the first clause that writes what an earlier one wrote, and the earlier one; i is 0 where none does.
func (t *Txn) twice() (j, i int) {
	if len(t.Clauses) <= few {
		return t.twiceOfFew()
	}
	if len(t.Clauses) > places/2 {
		return t.twiceOfMany()
	}
	var table [places]int16 // open addressing; index + 1 of a clause
	for i := range t.Clauses {
		c := &t.Clauses[i]
		if !c.writes() {
			continue
		}
		at := c.hash() % places
		for ; table[at] != 0; at = (at + 1) % places {
			if j := int(table[at]) - 1; c.sameKey(&t.Clauses[j]) {
				return j, i
			}
		}
		table[at] = int16(i) + 1
	}
	return 0, 0
}

func (t *Txn) twiceOfFew() (j, i int) {
	for i := range t.Clauses {
		c := &t.Clauses[i]
		if !c.writes() {
			continue
		}
		for j := range i {
			if d := &t.Clauses[j]; c.sameKey(d) && d.writes() {
				return j, i
			}
		}
	}
	return 0, 0
}

func (t *Txn) twiceOfMany() (j, i int) {
	type place struct {
		kind  byte
		scope Scope
		key   string
	}
	seen := make(map[place]int, len(t.Clauses))
	for i := range t.Clauses {
		c := &t.Clauses[i]
		if !c.writes() {
			continue
		}
		at := place{kindOf(c.Op), c.Scope, c.Key}
		if j, dup := seen[at]; dup {
			return j, i
		}
		seen[at] = i
	}
	return 0, 0
}

// sameKey reports whether two clauses speak of the same key of the same name space.
func (c *Clause) sameKey(d *Clause) bool {
	return c.Scope == d.Scope && c.Key == d.Key && kindOf(c.Op) == kindOf(d.Op)
}

// hash is FNV-1a over the key, its scope and its name space.
func (c *Clause) hash() uint32 {
	h := (2166136261 ^ uint32(c.Scope)) * 16777619
	h = (h ^ uint32(kindOf(c.Op))) * 16777619
	for i := range len(c.Key) {
		h = (h ^ uint32(c.Key[i])) * 16777619
	}
	return h
}
