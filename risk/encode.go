package risk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Encodings are fixed-width and big-endian, floats as their bits, so that a belief survives to the last one.
//
//	shared   version 1 · trust mean, variance 2×8 · ok, err 2×8
//	action   version 1 · declared 1 · last change 1 · started axes, a bit each 1 · currency 3 (zeros for none)
//	         · n, errs, changed at 3×8 · deviation mean, variance, published, sum worse, sum better 5×8
//	         · per started axis: n 8, mean, variance, weight, sum, up, down 6×8
const (
	encoding    = 1
	sharedBytes = 1 + 4*8
	actionBytes = 4 + 3 + 8*8
	axisBytes   = 7 * 8
)

// maxDeviation bounds an encoded deviation: log-odds reach 30, and the lowest base lies above −20.
const maxDeviation = maxLogOdds + 20

var events = [...]Event{NoChange, GotWorse, GotBetter}

// Shared returns the encoding of the part of b that every observation changes; nil for a belief that knows nothing.
func (b Belief) Shared() []byte {
	s := b.shared
	if s.empty() {
		return nil
	}
	out := make([]byte, 0, sharedBytes)
	out = append(out, encoding)
	out = appendFloats(out, s.trust.mean, s.trust.variance)
	return appendCounts(out, s.ok, s.err)
}

// Action returns the encoding of what is known of one action, and whether anything is. An observation changes that of its
// own action only.
func (b Belief) Action(name string) ([]byte, bool) {
	s, ok := b.actions.get(name)
	if !ok {
		return nil, false
	}
	out := make([]byte, 0, actionBytes+int(action.AxisCount)*axisBytes)
	out = append(out, encoding, s.declared, byte(slices.Index(events[:], s.changed)), s.started())
	var currency [3]byte
	copy(currency[:], s.currency)
	out = append(out, currency[:]...)
	out = appendCounts(out, s.n, s.errs, s.changedAt)
	out = appendFloats(out, s.dev.mean, s.dev.variance, s.published, s.sums.worse, s.sums.better)
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

// Decode reads what Shared and Action wrote. It accepts nothing that this package could not have written: every belief it
// returns is finite and proper and encodes to the same bytes. The error names the block and the field.
func Decode(shared []byte, actions map[string][]byte) (Belief, error) {
	var b Belief
	if len(shared) == 0 {
		if len(actions) > 0 {
			return Belief{}, errors.New("risk: decode: the shared block is missing, and there are actions")
		}
		return b, nil
	}
	s, err := decodeShared(shared)
	if err != nil {
		return Belief{}, fmt.Errorf("risk: decode: shared block: %w", err)
	}
	b.shared = s
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		s, err := decodeAction(name, actions[name])
		if err != nil {
			return Belief{}, fmt.Errorf("risk: decode: action %q: %w", name, err)
		}
		b.actions = b.actions.with(s)
	}
	return b, nil
}

func decodeShared(b []byte) (s shared, err error) {
	if err := header(b, sharedBytes); err != nil {
		return s, err
	}
	r := reader(b[1:])
	s.trust = gauss{r.float(), r.float()}
	s.ok, s.err = r.count(), r.count()
	switch {
	case !s.trust.proper(maxLogOdds):
		return s, fmt.Errorf("trust is not proper: mean %v, variance %v", s.trust.mean, s.trust.variance)
	case s.ok > maxCount || s.err > maxCount:
		return s, fmt.Errorf("counts are %d Ok, %d Err, at most %d are possible", s.ok, s.err, uint64(maxCount))
	}
	return s, nil
}

func decodeAction(name string, b []byte) (*state, error) {
	if err := action.CheckName(name); err != nil {
		return nil, err
	}
	if err := header(b, actionBytes); err != nil {
		return nil, err
	}
	s := &state{name: name, declared: b[1]}
	if int(b[2]) >= len(events) {
		return nil, fmt.Errorf("last change is %d, want below %d", b[2], len(events))
	}
	s.changed = events[b[2]]
	mask := b[3]
	if mask>>action.AxisCount != 0 {
		return nil, fmt.Errorf("axes are %#x, only %d exist", mask, action.AxisCount)
	}
	if cur := [3]byte(b[4:7]); cur != [3]byte{} {
		s.currency = string(cur[:])
	}
	r := reader(b[7:])
	s.n, s.errs, s.changedAt = r.count(), r.count(), r.count()
	s.dev = gauss{r.float(), r.float()}
	s.published = r.float()
	s.sums = sums{r.float(), r.float()}
	if err := s.check(mask&(1<<action.Money) != 0); err != nil {
		return nil, err
	}
	return s, decodeCosts(s, mask, r)
}

func decodeCosts(s *state, mask byte, r reader) error {
	for a := range action.AxisCount {
		if mask&(1<<a) == 0 {
			continue
		}
		if len(r) < axisBytes {
			return fmt.Errorf("block ends within axis %s", a)
		}
		l := level{n: r.count()}
		l.mean, l.variance, l.weight, l.sum, l.up, l.down = r.float(), r.float(), r.float(), r.float(), r.float(), r.float()
		if !l.proper() || l.n == 0 || l.n > s.n {
			return fmt.Errorf("axis %s is not proper: %+v", a, l)
		}
		s.costs[a] = l
	}
	if len(r) != 0 {
		return fmt.Errorf("%d bytes too many", len(r))
	}
	return nil
}

// check reports what this package could not have written.
func (s *state) check(money bool) error {
	switch {
	case s.declared < 1 || s.declared > maxRisk:
		return fmt.Errorf("declared risk is %d, want 1 to %d", s.declared, maxRisk)
	case s.n == 0 || s.n > maxCount || s.errs > s.n || s.changedAt > s.n || (s.changedAt > 0) != (s.changed != NoChange):
		return fmt.Errorf("counts do not agree: n %d, errs %d, changed %q at %d", s.n, s.errs, s.changed, s.changedAt)
	case !s.dev.proper(maxDeviation):
		return fmt.Errorf("log-odds are not proper: mean %v, variance %v", s.dev.mean, s.dev.variance)
	case !(s.published >= minProbability && s.published <= 1-minProbability):
		return fmt.Errorf("published probability is %v", s.published)
	case !(s.sums.worse >= 0 && s.sums.worse <= maxSum && s.sums.better >= 0 && s.sums.better <= maxSum):
		return fmt.Errorf("sums are %v and %v, want 0 to %d", s.sums.worse, s.sums.better, maxSum)
	case money != (s.currency != ""):
		return fmt.Errorf("currency is %q, money started: %v", s.currency, money)
	case money:
		return action.Cost{Currency: s.currency}.Check()
	}
	return nil
}

func header(b []byte, atLeast int) error {
	switch {
	case len(b) == 0:
		return errors.New("block is empty")
	case b[0] != encoding:
		return fmt.Errorf("encoding version is %d, want %d; reset the belief or decode it with the program that wrote it", b[0], encoding)
	case len(b) < atLeast:
		return fmt.Errorf("block is %d bytes long, want at least %d", len(b), atLeast)
	case atLeast == sharedBytes && len(b) > sharedBytes:
		return fmt.Errorf("%d bytes too many", len(b)-sharedBytes)
	}
	return nil
}

// reader takes fields off the front of a block whose length was checked.
type reader []byte

func (r *reader) count() uint64 {
	n := binary.BigEndian.Uint64(*r)
	*r = (*r)[8:]
	return n
}

func (r *reader) float() float64 { return math.Float64frombits(r.count()) }
