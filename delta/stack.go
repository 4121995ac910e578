package delta

// roomy makes room for a governed call on the stack of a goroutine that has just begun. A stack starts small, and each time it
// does not suffice all that is on it is moved, frame by frame, which a call on a goroutine of its own meets three or four
// times: a tenth of its time. Here there is nothing yet to be moved.
//
//go:noinline
func roomy() byte {
	var room [stackOfCall]byte
	return room[len(room)-1-int(sink)]
}

// stackOfCall is what a governed call needs of a stack, so that with what the runtime adds it is one of the sizes that each
// processor keeps at hand.
const stackOfCall = 10 << 10

// sink is zero; the compiler does not know it.
var sink uint8
