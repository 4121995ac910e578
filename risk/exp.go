package risk

import "math"

// Most of the time of an update goes into exponentials. This is the table-driven method of Tang (1989), in half the time
// of math.Exp and to within two units in the last place: x = (64·m + j + r)·ln2/64 with |r| ≤ 1/2, and
// exp(x) = 2^m · 2^(j/64) · exp(r·ln2/64), the last by its series.
const (
	expSteps = 64
	expHigh  = 6.93147180369123816490e-01 / expSteps // ln 2 in two parts (FreeBSD e_exp.c): a count times the first is exact
	expLow   = 1.90821492927058770002e-10 / expSteps
	expRound = 1.5 * (1 << 52) // added, leaves a number's nearest integer in its last bits
	expReach = 700
)

var expTable = func() (t [expSteps]float64) { // read-only
	for j := range t {
		t[j] = math.Exp2(float64(j) / expSteps)
	}
	return t
}()

func exp(x float64) float64 {
	if !(x > -expReach && x < expReach) {
		return math.Exp(x)
	}
	shifted := x*(expSteps/math.Ln2) + expRound
	n := int64(math.Float64bits(shifted)) << 12 >> 12
	k := shifted - expRound
	r := (x - k*expHigh) - k*expLow
	p := r + r*r*(1./2+r*(1./6+r*(1./24+r*(1./120))))
	s := expTable[n&(expSteps-1)]
	return math.Float64frombits(math.Float64bits(s+s*p) + uint64(n>>6)<<52)
}
