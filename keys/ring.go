package keys

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Ring wraps data keys. Its methods may be called from many goroutines; they may take a while, where a service is asked.
type Ring interface {
	// Wrap encrypts a data key under the newest key of the ring, for one place, which about describes. The text names the key
	// that it used; it does not contain a space.
	Wrap(ctx context.Context, key []byte, about string) (wrapped string, err error)
	// Unwrap decrypts what Wrap returned for the same place, now or under an earlier newest key. The error is [ErrNoKey] where
	// the ring does not hold the key that was used, [ErrSealed] where the text is not what was wrapped.
	Unwrap(ctx context.Context, wrapped, about string) (key []byte, err error)
}

// ErrNoKey says that a ring does not hold the key it would take.
var ErrNoKey = errors.New("the key ring does not hold the key")

// Key is one key of a [Set].
type Key struct {
	ID   string    // a name by [action.CheckName]
	Made time.Time // zero: not known
	key  [Size]byte
}

// NewKey makes a key. The error says what is wrong with the name.
func NewKey(id string, made time.Time) (Key, error) {
	k := Key{ID: id, Made: made.UTC().Truncate(time.Second)}
	if err := checkID(id); err != nil {
		return Key{}, err
	}
	rand.Read(k.key[:])
	return k, nil
}

func checkID(id string) error {
	if err := action.CheckName(id); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	return nil
}

// String names the key; it never shows it.
func (k Key) String() string { return "key " + k.ID }

// GoString is String: %#v shows no more.
func (k Key) GoString() string { return k.String() }

// Set is a [Ring] of keys in memory. It does not change.
type Set struct{ keys []Key }

// NewSet returns the ring of these keys. The last is the newest, which wraps; all of them unwrap.
func NewSet(keys ...Key) (*Set, error) {
	seen := map[string]bool{}
	for _, k := range keys {
		switch err := checkID(k.ID); {
		case err != nil:
			return nil, err
		case seen[k.ID]:
			return nil, fmt.Errorf("two keys of the ring are named %q; give each its own name", k.ID)
		case k.key == [Size]byte{}:
			return nil, fmt.Errorf("key %q is empty; make keys with NewKey", k.ID)
		}
		seen[k.ID] = true
	}
	if len(keys) == 0 {
		return nil, errors.New("a key ring needs a key; make one with NewKey, or with deltactl keys new")
	}
	return &Set{slices.Clone(keys)}, nil
}

// Keys returns the keys, the newest last.
func (s *Set) Keys() []Key { return slices.Clone(s.keys) }

// With returns the ring with one more key, which is the newest from then on.
func (s *Set) With(k Key) (*Set, error) { return NewSet(append(s.Keys(), k)...) }

// String names the keys.
func (s *Set) String() string {
	names := make([]string, len(s.keys))
	for i, k := range s.keys {
		names[i] = k.ID
	}
	return "key ring of " + strings.Join(names, ", ")
}

// GoString is String.
func (s *Set) GoString() string { return s.String() }

// Wrap implements [Ring].
func (s *Set) Wrap(_ context.Context, key []byte, about string) (string, error) {
	k := &s.keys[len(s.keys)-1]
	seal, err := k.aead()
	if err != nil {
		return "", err
	}
	nonce := make([]byte, seal.NonceSize(), seal.NonceSize()+len(key)+seal.Overhead())
	rand.Read(nonce)
	out := seal.Seal(nonce, nonce, key, place(k.ID, about))
	return k.ID + ":" + base64.RawURLEncoding.EncodeToString(out), nil
}

// Unwrap implements [Ring].
func (s *Set) Unwrap(_ context.Context, wrapped, about string) ([]byte, error) {
	id, body, ok := strings.Cut(wrapped, ":")
	if !ok {
		return nil, ErrSealed
	}
	i := slices.IndexFunc(s.keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w %q; add it to the ring again, it is needed until nothing is wrapped under it", ErrNoKey, action.CutTo(id, action.MaxName))
	}
	seal, err := s.keys[i].aead()
	if err != nil {
		return nil, err
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if n := seal.NonceSize(); err == nil && len(raw) > n {
		if key, err := seal.Open(nil, raw[:n], raw[n:], place(id, about)); err == nil {
			return key, nil
		}
	}
	return nil, fmt.Errorf("key %q: %w", id, ErrSealed)
}

// aead is AES-256-GCM under a key derived for wrapping. A random nonce of 96 bits is good for 2³² data keys.
func (k *Key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(derive(k.key[:], "wrap"))
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", k.ID, err)
	}
	return cipher.NewGCM(block)
}

func place(id, about string) []byte { return []byte("delta-agents wrap 1\n" + id + "\n" + about) }
