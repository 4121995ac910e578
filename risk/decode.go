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

// Decode reads what Shared and Action wrote. It accepts nothing that this package could not have written, as far as one
// block can tell: every belief it returns is finite and proper and encodes to the same bytes. The error names the block
// and the field.
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
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		a, err := decodeAction(name, actions[name], &s)
		if err != nil {
			return Belief{}, fmt.Errorf("risk: decode: action %q: %w", name, err)
		}
		b.actions = b.actions.with(a)
		s.eras[s.find(a.era)].refs++
	}
	b.shared = s
	return b, nil
}

func decodeShared(b []byte) (s shared, err error) {
	if err := header(b, sharedBytes); err != nil {
		return s, err
	}
	s.members = int(b[1])
	if s.agent.changed, err = eventOf(b[2]); err != nil {
		return s, err
	}
	r := reader(b[3:])
	tags, eras := r.short(), r.short()
	s.trust = gauss{r.float(), r.float()}
	s.agent.sums = sums{r.float(), r.float()}
	s.ok, s.err, s.agent.at = r.count(), r.count(), r.count()
	if err := s.check(tags, eras); err != nil {
		return s, err
	}
	if s.tags, err = r.names(tags); err != nil {
		return s, err
	}
	if want := 8 * (eras + floats(s.members, s.k(), eras)); len(r) != want {
		return s, fmt.Errorf("%d bytes follow the tags, want %d", len(r), want)
	}
	for range eras {
		s.eras = append(s.eras, era{id: r.count()})
	}
	s.f = r.floats(len(r) / 8)
	return s, s.checkState()
}

// check reports what the fixed part could not have held.
func (s *shared) check(tags, eras int) error {
	switch {
	case s.members < 1 || s.members > maxMembers:
		return fmt.Errorf("%d members, want 1 to %d", s.members, maxMembers)
	case tags > maxShared:
		return fmt.Errorf("%d tags, at most %d are possible", tags, maxShared)
	case eras < 1:
		return errors.New("no era")
	case !s.trust.proper(maxLogOdds):
		return fmt.Errorf("trust is not proper: mean %v, variance %v", s.trust.mean, s.trust.variance)
	case s.ok > maxCount || s.err > maxCount || s.agent.at > 2*maxCount:
		return fmt.Errorf("counts are %d Ok, %d Err, at most %d are possible", s.ok, s.err, uint64(maxCount))
	case (s.agent.at > 0) != (s.agent.changed != NoChange):
		return fmt.Errorf("counts do not agree: changed %q at %d", s.agent.changed, s.agent.at)
	}
	return s.agent.sums.check()
}

// checkState reports weights, means, covariances and steps that are not proper.
func (s *shared) checkState() error {
	var sum float64
	for _, w := range s.weights() {
		if !(w > 1e-13 && w <= 1) {
			return fmt.Errorf("weight is %v, want above 0 and at most 1", w)
		}
		sum += w
	}
	if !(math.Abs(sum-1) < 1e-6) {
		return fmt.Errorf("weights add up to %v, want 1", sum)
	}
	scratch := make([]float64, packed(s.k()))
	for i := range s.members {
		if !bounded(s.mean(i), maxPart) {
			return fmt.Errorf("mean of member %d is not proper: %v", i, s.mean(i))
		}
		if factor(scratch, s.cov(i), s.k()) <= 0 {
			return fmt.Errorf("covariance of member %d is not positive definite", i)
		}
	}
	return s.checkEras()
}

func (s *shared) checkEras() error {
	before := uint64(0)
	for e, a := range s.eras {
		if a.id <= before || a.id > maxCount {
			return fmt.Errorf("era %d has id %d after %d", e, a.id, before)
		}
		before = a.id
		for i := range s.members {
			least := 0.
			if e == s.current() {
				least = fade
			}
			if f := s.step(e, i); !(f[sKeep] >= least && f[sKeep] <= 1 && f[sVar] >= 0 && bounded(f, maxPart)) {
				return fmt.Errorf("step of era %d, member %d is not proper: %v", a.id, i, f)
			}
		}
	}
	return nil
}

func bounded(fs []float64, reach float64) bool {
	for _, f := range fs {
		if !(math.Abs(f) <= reach) {
			return false
		}
	}
	return true
}

func decodeAction(name string, b []byte, sh *shared) (s *state, err error) {
	if err := action.CheckName(name); err != nil {
		return nil, err
	}
	if err := header(b, actionBytes); err != nil {
		return nil, err
	}
	s = &state{name: name}
	if s.own.changed, err = eventOf(b[2]); err != nil {
		return nil, err
	}
	mask := b[3]
	if mask>>action.AxisCount != 0 {
		return nil, fmt.Errorf("axes are %#x, only %d exist", mask, action.AxisCount)
	}
	if cur := [3]byte(b[4:7]); cur != [3]byte{} {
		s.currency = string(cur[:])
	}
	r := reader(b[7:])
	s.k = r.short()
	s.era, s.n, s.errs, s.own.at = r.count(), r.count(), r.count(), r.count()
	s.held, s.own.sums, s.alone = r.float(), sums{r.float(), r.float()}, gauss{r.float(), r.float()}
	if err := s.check(mask&(1<<action.Money) != 0); err != nil {
		return nil, err
	}
	if err := s.decodeLeaves(&r, int(b[1]), sh); err != nil {
		return nil, err
	}
	return s, decodeCosts(s, mask, r)
}

func (s *state) decodeLeaves(r *reader, members int, sh *shared) error {
	switch {
	case members != sh.members:
		return fmt.Errorf("%d members, the shared block has %d", members, sh.members)
	case s.k < fixed || s.k > sh.k():
		return fmt.Errorf("%d parts, want %d to the %d of the shared block", s.k, fixed, sh.k())
	case sh.find(s.era) < 0:
		return fmt.Errorf("era %d is not in the shared block", s.era)
	case len(*r) < 8*members*(s.k+2):
		return errors.New("block ends within the members")
	}
	s.f = r.floats(members * (s.k + 2))
	if !bounded(s.f, maxPart) {
		return fmt.Errorf("log-odds are not proper: %v", s.f)
	}
	return nil
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
	case s.n == 0 || s.n > maxCount || s.errs > s.n || s.own.at > s.n || (s.own.at > 0) != (s.own.changed != NoChange):
		return fmt.Errorf("counts do not agree: n %d, errs %d, changed %q at %d", s.n, s.errs, s.own.changed, s.own.at)
	case !(math.Abs(s.held) <= maxHeld):
		return fmt.Errorf("held back is %v, want at most %d", s.held, maxHeld)
	case !s.alone.proper(maxAlone):
		return fmt.Errorf("own record is not proper: mean %v, variance %v", s.alone.mean, s.alone.variance)
	case money != (s.currency != ""):
		return fmt.Errorf("currency is %q, money started: %v", s.currency, money)
	case money:
		if err := (action.Cost{Currency: s.currency}).Check(); err != nil {
			return err
		}
	}
	return s.own.sums.check()
}

func (s sums) check() error {
	if !(s.worse >= 0 && s.worse <= maxSum && s.better >= 0 && s.better <= maxSum) {
		return fmt.Errorf("sums are %v and %v, want 0 to %d", s.worse, s.better, maxSum)
	}
	return nil
}

func eventOf(code byte) (Event, error) {
	if int(code) >= len(events) {
		return NoChange, fmt.Errorf("last change is %d, want below %d", code, len(events))
	}
	return events[code], nil
}

func header(b []byte, atLeast int) error {
	switch {
	case len(b) == 0:
		return errors.New("block is empty")
	case b[0] != encoding:
		return fmt.Errorf("encoding version is %d, want %d; reset the belief or decode it with the program that wrote it", b[0], encoding)
	case len(b) < atLeast:
		return fmt.Errorf("block is %d bytes long, want at least %d", len(b), atLeast)
	}
	return nil
}

// reader takes fields off the front of a block whose length was checked.
type reader []byte

func (r *reader) short() int {
	n := binary.BigEndian.Uint16(*r)
	*r = (*r)[2:]
	return int(n)
}

func (r *reader) count() uint64 {
	n := binary.BigEndian.Uint64(*r)
	*r = (*r)[8:]
	return n
}

func (r *reader) float() float64 { return math.Float64frombits(r.count()) }

func (r *reader) floats(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = r.float()
	}
	return out
}

// names reads the tags and checks the length of what it reads itself.
func (r *reader) names(n int) (out []string, err error) {
	for range n {
		if len(*r) == 0 || len(*r) < 1+int((*r)[0]) {
			return nil, errors.New("block ends within the tags")
		}
		end := 1 + int((*r)[0])
		t := string((*r)[1:end])
		if err := action.CheckName(t); err != nil {
			return nil, fmt.Errorf("tag: %w", err)
		}
		if slices.Contains(out, t) {
			return nil, fmt.Errorf("tag %q is named twice", t)
		}
		out, *r = append(out, t), (*r)[end:]
	}
	return out, nil
}
