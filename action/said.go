package action

import (
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// MaxText bounds, in bytes, what is kept of any one text that somebody else made: an error's words, a reason, a planner's
// reasoning. What is longer is cut, and ends in "…".
const MaxText = 2000

const ellipsis = "…"

// Cut returns s, cut to [MaxText] bytes between two characters.
func Cut(s string) string { return CutTo(s, MaxText) }

// CutTo returns s, cut to n bytes, the "…" included, between two characters. Cutting again changes nothing.
func CutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n-len(ellipsis), 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

// TextOf returns what an error, or the value of a panic, says of itself, cut to [MaxText]. It runs the value's own code
// and contains a panic there. What has no words of its own is named by its type: printing it could go round in circles.
func TextOf(v any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("a %T that cannot say what it is: reading it panics", v)
		}
	}()
	switch s := v.(type) {
	case nil:
		return "nil"
	case error:
		return Cut(s.Error())
	case fmt.Stringer:
		return Cut(s.String())
	}
	switch k := reflect.TypeOf(v).Kind(); {
	case k == reflect.String || k >= reflect.Bool && k <= reflect.Complex128:
		return Cut(fmt.Sprint(v))
	}
	return fmt.Sprintf("a value of type %T", v)
}

// contained is an error whose words were read once, where that could do no harm.
type contained struct {
	text    string
	unknown bool
	err     error
}

// Contain returns an error that can be passed on, printed and recorded without harm, whatever err is: a typed nil, one
// whose methods panic, one with megabytes of text. Its words are read now and cut to [MaxText]; errors.Is and errors.As
// still find what err wraps, and find nothing where that panics.
func Contain(err error) error {
	if err == nil {
		return nil
	}
	if c, ok := err.(*contained); ok {
		return c
	}
	return &contained{TextOf(err), IsUnknown(err), err}
}

func (c *contained) Error() string { return c.text }

func (c *contained) Is(target error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return errors.Is(c.err, target)
}

func (c *contained) As(target any) (as bool) {
	if u, ok := target.(*unknown); ok {
		if c.unknown {
			*u = unknown{c}
		}
		return c.unknown
	}
	defer func() {
		if recover() != nil {
			as = false
		}
	}()
	return errors.As(c.err, target)
}
