package action

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Amount writes an amount on an axis for people: "EUR 25.00", "1.5s", "120 tokens", "1 call". Money is shown to the cent, and to
// the micro-unit where there is less.
func (a Axis) Amount(n int64, currency string) string {
	switch a {
	case Duration:
		return time.Duration(n).String()
	case Money:
		return currency + " " + micros(n)
	}
	name := a.String()
	if n == 1 {
		name = strings.TrimSuffix(name, "s")
	}
	return strconv.FormatInt(n, 10) + " " + name
}

// micros writes millionths as a decimal, with at least two places.
func micros(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%s%d.%06d", sign, n/1e6, n%1e6)
	for range 4 {
		if s[len(s)-1] != '0' {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// String lists the axes that are not zero: "500 tokens, EUR 2.50".
func (c Cost) String() string {
	out := ""
	for a := range AxisCount {
		if n := c.Amount(a); n != 0 {
			if out != "" {
				out += ", "
			}
			out += a.Amount(n, c.Currency)
		}
	}
	if out == "" {
		return "nothing"
	}
	return out
}
