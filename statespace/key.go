package statespace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxKey is the length in bytes above which a key has its values hashed.
const MaxKey = 200

// Value is one field of a fact.
type Value struct {
	Path   string
	Output bool   // the path leads into the output
	JSON   string // "" where the fact is hashed
}

// Fact is a key taken apart.
//
//	confirm-order                                 an Ok of the action
//	confirm-order@orderId="ORD-1"                 … with this value
//	stat@output:path="/a",output:size=7           … with these values in one Ok, sorted by field
//	login@token#9f86d081…                         … with a value that is secret, or too long to show
//	workflow:onboard:2@customer="C1"               a workflow that completed, in that version, with this value
//	^3600000000^confirm-order@orderId="ORD-1"     … that later tasks may rest on for an hour, in µs
//
// A path that holds other characters than letters, digits and _ . * $ / - is quoted as a JSON string.
type Fact struct {
	Action   string
	Workflow bool          // Action names a workflow, which completed
	Version  string        // of the workflow, where the fact is about that version alone
	Lasts    time.Duration // how old it may get, where it outlasts its task; see [Lasting]
	Values   []Value       // sorted as in the key; none for an unbound fact
	Hash     string        // hex SHA-256, or HMAC of it, where the values are hashed
}

// Key returns the key of the fact. Two facts that differ have different keys, up to a collision of SHA-256.
func (f Fact) Key() string {
	fields, values := make([]string, len(f.Values)), make([]string, len(f.Values))
	for i, v := range f.Values {
		fields[i], values[i] = fieldText(v.Path, v.Output), v.JSON
	}
	if f.Hash != "" {
		return setKey(f.name(), fields) + "#" + f.Hash
	}
	_, key := makeKey(f.name(), fields, values, false, &Hash{})
	return key
}

// setKey names the field set of an action: what all its keys have in common.
func setKey(name string, fields []string) string {
	if len(fields) == 0 {
		return name
	}
	return name + "@" + strings.Join(fields, ",")
}

// makeKey returns the joined value and the key of one tuple. What is hashed is the readable key, so that the same secret
// under two field sets has two unrelated hashes. Every worker must arrive at the same key: without a key of the hash, a
// secret of few possible values can be guessed from it.
func makeKey(name string, fields, values []string, hashed bool, by *Hash) (value, key string) {
	if len(fields) == 0 {
		return "", name
	}
	var b strings.Builder
	b.WriteString(name)
	sep := byte('@')
	for i, f := range fields {
		b.WriteByte(sep)
		b.WriteString(f)
		b.WriteByte('=')
		b.WriteString(values[i])
		sep = ','
	}
	key = b.String()
	if !hashed && !by.All && len(key) <= MaxKey {
		return strings.Join(values, ","), key
	}
	sum := by.sum(key, hashed)
	value = "#" + hex.EncodeToString(sum[:])
	return value, setKey(name, fields) + value
}

// splitKey separates a key into the key of its field set and its joined values, without judging either.
func splitKey(key string) (set, value string, ok bool) {
	at := strings.IndexByte(key, '@')
	if at < 0 {
		return key, "", true
	}
	if end := scanField(key, at+1); end > 0 && end < len(key) && key[end] == '=' {
		if v := scanValue(key, end+1); v == len(key) && v > end+1 { // one field, as nearly always: nothing is put together
			return key[:end], key[end+1:], true
		}
	}
	var sb, vb strings.Builder
	sb.WriteString(key[:at])
	for sep, i := byte('@'), at+1; ; sep = ',' {
		end := scanField(key, i)
		if end < 0 || end == len(key) {
			return "", "", false
		}
		sb.WriteByte(sep)
		sb.WriteString(key[i:end])
		switch i = end + 1; key[end] {
		case ',': // a field without a value: only a hash can follow
			if vb.Len() > 0 {
				return "", "", false
			}
			continue
		case '#':
			return sb.String(), key[end:], vb.Len() == 0
		}
		if end = scanValue(key, i); end <= i {
			return "", "", false
		}
		if vb.Len() > 0 {
			vb.WriteByte(',')
		}
		vb.WriteString(key[i:end])
		if end == len(key) {
			return sb.String(), vb.String(), true
		}
		i = end + 1
	}
}

// scanField returns the index of the '=', ',' or '#' after the field that starts at i, len(s) without one, -1 in error.
func scanField(s string, i int) int {
	if strings.HasPrefix(s[i:], outputPrefix) {
		i += len(outputPrefix)
	}
	if i < len(s) && s[i] == '"' {
		return scanString(s, i)
	}
	for ; i < len(s); i++ {
		if c := s[i]; c == '=' || c == ',' || c == '#' {
			return i
		}
	}
	return len(s)
}

// ParseKey takes a key apart. It accepts exactly the keys that [Fact.Key] writes.
func ParseKey(key string) (Fact, error) {
	f, err := parseKey(key)
	if err != nil {
		return Fact{}, fmt.Errorf("fact key %.80q: %w", key, err)
	}
	if f.Key() != key {
		return Fact{}, fmt.Errorf("fact key %.80q is not in canonical form", key)
	}
	return f, nil
}

func parseKey(key string) (Fact, error) {
	set, value, ok := splitKey(key)
	if !ok {
		return Fact{}, errors.New("malformed, want action@field=value,… or action@field,…#hash")
	}
	name, fields, bound := strings.Cut(set, "@")
	f := Fact{Action: name}
	if d, rest, ok := cutLasting(name); ok {
		f.Lasts, f.Action, name = d, rest, rest
	}
	if err := f.named(name); err != nil || !bound {
		return f, err
	}
	var values []string
	if hash, hashed := strings.CutPrefix(value, "#"); hashed {
		f.Hash = hash
		if sum, err := hex.DecodeString(hash); err != nil || len(sum) != sha256.Size || strings.ToLower(hash) != hash {
			return f, errors.New("hash is not 64 lower-case hexadecimal digits")
		}
	} else {
		values = splitValues(value)
	}
	return readFields(f, fields, values)
}

func readFields(f Fact, fields string, values []string) (Fact, error) {
	last := ""
	for i := 0; i < len(fields); {
		end := scanField(fields, i)
		if end < 0 {
			return f, errors.New("field is not terminated")
		}
		v, err := readValue(fields[i:end])
		if err != nil {
			return f, err
		}
		if text := fields[i:end]; text <= last {
			return f, fmt.Errorf("fields %s and %s are not in order", last, text)
		}
		last = fields[i:end]
		f.Values = append(f.Values, v)
		i = end + 1
	}
	if f.Hash != "" {
		return f, nil
	}
	if len(values) != len(f.Values) {
		return f, fmt.Errorf("%d fields but %d values", len(f.Values), len(values))
	}
	for i, text := range values {
		if err := checkCanonical(text); err != nil {
			return f, err
		}
		f.Values[i].JSON = text
	}
	return f, nil
}

func readValue(text string) (v Value, err error) {
	v.Path, v.Output, err = readField(text)
	return v, err
}

// checkCanonical reports whether text is what appendValue writes for some value that can be bound.
func checkCanonical(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("value %s: %w", text, err)
	}
	b, err := appendValue(nil, v)
	if err != nil {
		return err
	}
	if v == nil || !bytes.Equal(b, []byte(text)) {
		return fmt.Errorf("value %s is not in canonical form", text)
	}
	return nil
}
