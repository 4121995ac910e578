package risk

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Encodings are big-endian, floats as their bits, so that a belief survives to the last one.
//
//	shared   version 1 · members 1 · last change 1 · tags 2 · eras 2
//	         · trust mean, variance, sum worse, sum better 4×8 · ok, err, changed at 3×8
//	         · per tag: length 1, name · per era: id 8
//	         · weights, then per member mean and covariance, then per era and member its step, all 8
//	action   version 1 · members 1 · last change 1 · started axes, a bit each 1 · currency 3 (zeros for none) · parts 2
//	         · era, n, errs, changed at 4×8 · held back, sum worse, sum better, own record's mean and variance 5×8
//	         · per member: v, a, b, all 8
//	         · per started axis: n 8, mean, variance, weight, sum, up, down 6×8
const (
	encoding    = 3
	sharedBytes = 3 + 2*2 + 7*8
	actionBytes = 4 + 3 + 2 + 9*8
	axisBytes   = 7 * 8
)

var events = [...]Event{NoChange, GotWorse, GotBetter}

func (e Event) code() byte { return byte(slices.Index(events[:], e)) }

// Shared returns the encoding of the part of b that every observation changes; nil for a belief that knows nothing.
func (b Belief) Shared() []byte {
	s := &b.shared
	if s.empty() {
		return nil
	}
	out := make([]byte, 0, sharedBytes+8*len(s.f)+8*len(s.eras)+32*len(s.tags))
	out = append(out, encoding, byte(s.members), s.agent.changed.code())
	out = binary.BigEndian.AppendUint16(out, uint16(len(s.tags)))
	out = binary.BigEndian.AppendUint16(out, uint16(len(s.eras)))
	out = appendFloats(out, s.trust.mean, s.trust.variance, s.agent.sums.worse, s.agent.sums.better)
	out = appendCounts(out, s.ok, s.err, s.agent.at)
	for _, t := range s.tags {
		out = append(out, byte(len(t)))
		out = append(out, t...)
	}
	for _, e := range s.eras {
		out = appendCounts(out, e.id)
	}
	return appendFloats(out, s.f...)
}

// Action returns the encoding of what is known of one action, and whether anything is. An observation changes that of its
// own action only.
func (b Belief) Action(name string) ([]byte, bool) {
	s, ok := b.actions.get(name)
	if !ok {
		return nil, false
	}
	out := make([]byte, 0, actionBytes+8*len(s.f)+int(action.AxisCount)*axisBytes)
	out = append(out, encoding, byte(len(s.f)/(s.k+2)), s.own.changed.code(), s.started())
	var currency [3]byte
	copy(currency[:], s.currency)
	out = append(out, currency[:]...)
	out = binary.BigEndian.AppendUint16(out, uint16(s.k))
	out = appendCounts(out, s.era, s.n, s.errs, s.own.at)
	out = appendFloats(out, s.held, s.own.sums.worse, s.own.sums.better, s.alone.mean, s.alone.variance)
	out = appendFloats(out, s.f...)
	for _, l := range s.costs {
		if l.started() {
			out = appendCounts(out, l.n)
			out = appendFloats(out, l.mean, l.variance, l.weight, l.sum, l.up, l.down)
		}
	}
	return out, true
}

// started returns the axes whose level has started, a bit each.
func (s *state) started() (mask byte) {
	for a, l := range s.costs {
		if l.started() {
			mask |= 1 << a
		}
	}
	return mask
}

func appendFloats(b []byte, fs ...float64) []byte {
	for _, f := range fs {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(f))
	}
	return b
}

func appendCounts(b []byte, ns ...uint64) []byte {
	for _, n := range ns {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}
