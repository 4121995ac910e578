package schema

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"net/mail"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xeipuuv/gojsonschema"
)

// A format applies to strings or to numbers and holds of every value of another type.
type format struct {
	text   func(string) bool
	number func(*big.Rat) bool
	fault  string // "" is that the value is not a valid one of the format
}

// formats are the formats that our declarations may use; both judges check them with these functions. Those of
// gojsonschema are used where they are right: its date-time accepts a bare date, its email a display name.
var formats = map[string]format{
	"date":                  {text: theirs(gojsonschema.DateFormatChecker{})},
	"time":                  {text: func(s string) bool { return parses(s, "15:04:05Z07:00") }},
	"date-time":             {text: func(s string) bool { return parses(s, time.RFC3339) }},
	"email":                 {text: isEmail},
	"hostname":              {text: theirs(gojsonschema.HostnameFormatChecker{})},
	"ipv4":                  {text: func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() }},
	"ipv6":                  {text: isIPv6},
	"uri":                   {text: theirs(gojsonschema.URIFormatChecker{})},
	"uri-reference":         {text: theirs(gojsonschema.URIReferenceFormatChecker{})},
	"uri-template":          {text: theirs(gojsonschema.URITemplateFormatChecker{})},
	"uuid":                  {text: func(s string) bool { return gojsonschema.UUIDFormatChecker{}.IsFormat(strings.ToLower(s)) }},
	"regex":                 {text: theirs(gojsonschema.RegexFormatChecker{})},
	"json-pointer":          {text: theirs(gojsonschema.JSONPointerFormatChecker{})},
	"relative-json-pointer": {text: theirs(gojsonschema.RelativeJSONPointerFormatChecker{})},
	"base64":                {text: isBase64},

	// What Go's types hold, so that a checked input can always be decoded.
	"int8":   {number: between(math.MinInt8, math.MaxInt8)},
	"int16":  {number: between(math.MinInt16, math.MaxInt16)},
	"int32":  {number: between(math.MinInt32, math.MaxInt32)},
	"int64":  {number: between(math.MinInt64, math.MaxInt64)},
	"uint8":  {number: between(0, math.MaxUint8)},
	"uint16": {number: between(0, math.MaxUint16)},
	"uint32": {number: between(0, math.MaxUint32)},
	"uint64": {number: between(0, math.MaxUint64)},
	"float":  {number: exactly32, fault: "is not held exactly by a 32-bit float; write at most 6 significant digits"},
	"double": {number: exactly64, fault: "is not held exactly by a 64-bit float; write at most 15 significant digits"},
}

func formatNames() []string {
	names := make([]string, 0, len(formats))
	for name := range formats {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func theirs(c gojsonschema.FormatChecker) func(string) bool {
	return func(s string) bool { return c.IsFormat(s) }
}

func parses(s, layout string) bool {
	// Go's layouts accept a comma before the fraction and a one-digit hour, RFC 3339 does not.
	_, err := time.Parse(layout, s)
	hour := s
	if i := strings.IndexByte(s, 'T'); i >= 0 {
		hour = s[i+1:]
	}
	return err == nil && !strings.Contains(s, ",") && len(hour) > 2 && hour[2] == ':'
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Name == "" && a.Address == s
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// isBase64 holds of one text for each sequence of bytes: no line ends, no bits set that mean nothing.
func isBase64(s string) bool {
	_, err := base64.StdEncoding.Strict().DecodeString(s)
	return err == nil && !strings.ContainsAny(s, "\r\n")
}

func between(low int64, high uint64) func(*big.Rat) bool {
	lo, hi := new(big.Rat).SetInt64(low), new(big.Rat).SetUint64(high)
	return func(r *big.Rat) bool { return r.Cmp(lo) >= 0 && r.Cmp(hi) <= 0 }
}

// exactly32 and exactly64 hold of the decimals that come out of a float again as they went in: those that are the shortest
// of all that name it. So a function sees the very number that was checked, and of each float there is one. Every decimal
// of few enough digits is such a one, 0.1 too; 0.99999999999999999999, which would be 1, and 9007199254740993 are not.
func exactly32(r *big.Rat) bool {
	f, _ := r.Float32()
	return isShortest(r, float64(f), 32)
}

func exactly64(r *big.Rat) bool {
	f, _ := r.Float64()
	return isShortest(r, f, 64)
}

func isShortest(r *big.Rat, f float64, bits int) bool {
	if math.IsInf(f, 0) {
		return false
	}
	shortest, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, bits))
	return ok && shortest.Cmp(r) == 0
}

func (f format) holds(v any) bool {
	switch v := v.(type) {
	case string:
		return f.text == nil || f.text(v)
	case json.Number:
		return f.number == nil || f.number(rat(v))
	}
	return true
}

// judgeFormat is what our formats are called towards gojsonschema, whose registry is global: no name of another user
// can be meant.
const judgeFormat = "delta-agents/schema/"

type judgeChecker format

// IsFormat is called by gojsonschema with a string or, for numbers, a *big.Rat.
func (c judgeChecker) IsFormat(v any) bool {
	switch v := v.(type) {
	case string:
		return c.text == nil || c.text(v)
	case *big.Rat:
		return c.number == nil || c.number(v)
	}
	return true
}

func init() {
	for name, f := range formats {
		gojsonschema.FormatCheckers.Add(judgeFormat+name, judgeChecker(f))
	}
}
