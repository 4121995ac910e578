package redisstore

import "sync"

// encoders are used again: what a transaction is put together in is several times what it says.
var encoders = sync.Pool{New: func() any {
	return &encoder{
		slots: make([]slot, 0, 24), next: make([]int32, 0, 24), from: make([]int, 0, 24), all: make([]string, 0, 24),
		k: make([]string, 0, 10), text: make([]string, 0, 96), args: make([]any, 0, 112), arena: make([]byte, 0, 1024),
	}
}}

// scratchMost is how many arguments, and bytes of what they are made of times sixteen, an encoder may have had that is used again.
const scratchMost = 1 << 12

// done gives the encoder back, with all that is made of it: nobody may send it, or read what it names, any more. Of a
// transaction whose answer nobody waited for it is not called.
func (e *encoder) done() {
	if cap(e.text) > scratchMost || cap(e.arena) > 16*scratchMost {
		return
	}
	clear(e.slots)
	clear(e.all)
	clear(e.k)
	clear(e.text)
	clear(e.args)
	*e = encoder{
		slots: e.slots[:0], next: e.next[:0], from: e.from[:0], all: e.all[:0], k: e.k[:0], text: e.text[:0], args: e.args[:0],
		arena: e.arena[:0],
	}
	encoders.Put(e)
}
