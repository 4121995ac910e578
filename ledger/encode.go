package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Encode returns the canonical text of e: one line of JSON, without HTML escaping, V filled in where it is zero. Text
// that is not valid UTF-8 (a tool's error message may be anything) is written with U+FFFD in its place, so an event can
// always be recorded. It is an error where the type is unknown, V is another version, a number is not finite, or Input,
// Output or State are not JSON.
func Encode(e Event) (string, error) {
	b, err := AppendEvent(make([]byte, 0, 1024), &e)
	return string(b), err
}

// encodeSlow is Encode by encoding/json: the measure of what AppendEvent writes, and what stands in for it.
func encodeSlow(e Event) (string, error) {
	if e.V == 0 {
		e.V = Version
	}
	if err := e.check(); err != nil {
		return "", fmt.Errorf("encode event: %w", err)
	}
	text, err := writeAny(&e)
	if err == nil && strings.Contains(text, `\ufffd`) {
		// Bytes that were not UTF-8 come out as this escape, the character itself comes out raw: read once and write
		// again, and both are the character.
		var clean Event
		if err = json.Unmarshal([]byte(text), &clean); err == nil {
			text, err = writeAny(&clean)
		}
	}
	if err != nil {
		return "", fmt.Errorf("encode event %s of intent %q: %w", e.Type, e.Intent, err)
	}
	return text, nil
}

func writeAny(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Decode reads what Encode wrote and nothing else: an unknown field, another order, a duplicate key, white space or
// trailing data are errors, and so is another schema version, which an older or newer program must read.
func Decode(text string) (Event, error) {
	var e Event
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return Event{}, fmt.Errorf("decode event: %w", laterVersion(text, err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Event{}, errors.New("decode event: data after the event")
	}
	if err := e.check(); err != nil {
		return Event{}, fmt.Errorf("decode event: %w", err)
	}
	again, err := Encode(e)
	if err != nil {
		return Event{}, fmt.Errorf("decode event: %w", err)
	}
	if again != text {
		return Event{}, fmt.Errorf("decode event: not in canonical form from byte %d on", common(again, text))
	}
	return e, nil
}

func (e *Event) check() error {
	if e.V != Version {
		return fmt.Errorf("schema version %d, this program knows %d", e.V, Version)
	}
	if !e.Type.Valid() {
		return fmt.Errorf("unknown type %q", e.Type)
	}
	return nil
}

// laterVersion tells the reader of a record that a newer program wrote so, rather than which field puzzled this one.
func laterVersion(text string, err error) error {
	var v struct {
		V int `json:"v"`
	}
	if json.NewDecoder(strings.NewReader(text)).Decode(&v) == nil && v.V > Version {
		return fmt.Errorf("schema version %d, this program knows %d: read it with a newer one", v.V, Version)
	}
	return err
}

// common returns the length of the common prefix.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
