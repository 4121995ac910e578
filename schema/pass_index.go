package schema

import "encoding/binary"

// nameIndex finds declared names by a hash of their length and four of their bytes, its multipliers chosen so that no two
// of them collide; where none are found quickly it is a map.
type nameIndex struct {
	slots []uint16 // 1 + the place in entries
	k     uint32
	names map[string]int
}

func newNameIndex(entries []entry) nameIndex {
	x := nameIndex{}
	if len(entries) == 0 {
		return x
	}
	size := 4
	for size < 2*len(entries) {
		size *= 2
	}
	for range 3 {
		x.slots = make([]uint16, size)
		for x.k = 0x9E3779B1; x.k < 0x9E3779B1+400; x.k += 2 {
			if len(entries) < 1<<15 && x.fill(entries) {
				return x
			}
		}
		size *= 2
	}
	x = nameIndex{names: map[string]int{}}
	for i := range entries {
		x.names[entries[i].name] = i
	}
	return x
}

func (x *nameIndex) fill(entries []entry) bool {
	clear(x.slots)
	for i := range entries {
		h := slot(x.k, []byte(entries[i].name)) & uint32(len(x.slots)-1)
		if x.slots[h] != 0 {
			return false
		}
		x.slots[h] = uint16(i + 1)
	}
	return true
}

func slot(k uint32, name []byte) uint32 {
	n := len(name)
	if n == 0 {
		return 0
	}
	h := uint32(n) | uint32(name[0])<<8 | uint32(name[n/2])<<16 | uint32(name[n-1])<<24
	h = (h ^ uint32(name[n/4])<<4) * k
	return h >> 15
}

// find returns the entry of a declared name, or nil.
func (pl *place) find(name []byte) *entry {
	if pl.index.names != nil {
		if i, ok := pl.index.names[string(name)]; ok {
			return &pl.entries[i]
		}
		return nil
	}
	if len(pl.index.slots) == 0 {
		return nil
	}
	i := pl.index.slots[slot(pl.index.k, name)&uint32(len(pl.index.slots)-1)]
	if i == 0 || pl.entries[i-1].name != string(name) {
		return nil
	}
	return &pl.entries[i-1]
}

// prefix is a text of at most 16 bytes as two words that overlap, so that it is found with two comparisons.
type prefix struct {
	n          int // its length, 0 for one that is too long
	head, mask uint64
	tail       uint64 // its last 8 bytes, where it has more than 8
}

func newPrefix(text string) (x prefix) {
	n := len(text)
	if n > 16 {
		return x
	}
	var b, m [8]byte
	copy(b[:], text)
	copy(m[:min(n, 8)], "\xff\xff\xff\xff\xff\xff\xff\xff")
	x.n, x.head, x.mask = n, binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(m[:])
	if n > 8 {
		x.tail = binary.LittleEndian.Uint64([]byte(text[n-8:]))
	}
	return x
}

// begins reports whether src begins with the canonical name, its quotes and its colon.
func (e *entry) begins(src []byte) bool {
	x := &e.match
	if x.n == 0 || len(src) < 16 {
		return len(src) >= len(e.text) && string(src[:len(e.text)]) == e.text
	}
	return binary.LittleEndian.Uint64(src)&x.mask == x.head && (x.n <= 8 || binary.LittleEndian.Uint64(src[x.n-8:]) == x.tail)
}
