package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Size is the length of a key in bytes.
const Size = 32

// ErrSealed says that a sealed text is not what was sealed: it was changed, moved to another place, or written under
// another key.
var ErrSealed = errors.New("the sealed text cannot be opened: it was changed, moved, or sealed under another key")

// DigestPrefix begins every digest that stands for a secret.
const DigestPrefix = "hmac:"

// Data is a data key, ready for use. Its methods may be called from many goroutines.
type Data struct {
	id   string
	mac  []byte // for digests
	seal cipher.AEAD
}

// NewData returns the bytes of a new data key.
func NewData() []byte {
	key := make([]byte, Size)
	rand.Read(key) // never fails: it ends the program instead
	return key
}

// DataOf makes a data key usable. The error says that key does not have [Size] bytes.
func DataOf(key []byte) (*Data, error) {
	if len(key) != Size {
		return nil, fmt.Errorf("data key has %d bytes, want %d", len(key), Size)
	}
	block, err := aes.NewCipher(derive(key, "seal"))
	if err != nil {
		return nil, fmt.Errorf("data key: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("data key: %w", err)
	}
	return &Data{id: hex.EncodeToString(derive(key, "name")[:4]), mac: derive(key, "digest"), seal: seal}, nil
}

// derive makes a key for one purpose, so that none serves two (HKDF-SHA-256, RFC 5869).
func derive(key []byte, purpose string) []byte {
	out, err := hkdf.Expand(sha256.New, key, "delta-agents data key 1 "+purpose, Size)
	if err != nil { // it is short enough
		panic(err)
	}
	return out
}

// ID names the key; it tells nothing about it.
func (d *Data) ID() string { return d.id }

// Sum is the HMAC-SHA-256 of the parts, each preceded by its length, for one use. Sums of different uses are unrelated.
func (d *Data) Sum(use string, parts ...string) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, d.mac)
	var n [8]byte
	for i := -1; i < len(parts); i++ {
		p := use
		if i >= 0 {
			p = parts[i]
		}
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	h.Sum(sum[:0])
	return sum
}

// Digest is what stands for a secret value where it must not be read: "hmac:", the name of the key, and the HMAC-SHA-256 in
// hexadecimal. Equal values have equal digests under one key; without the key no guess can be tested.
func (d *Data) Digest(value string) string {
	sum := d.Sum("value", value)
	return DigestPrefix + d.id + ":" + hex.EncodeToString(sum[:])
}

// Seal encrypts a text (AES-256-GCM under a random nonce) for one place, which about describes: it cannot be opened for
// another one. The result is the name of the key, a dot, and unpadded base64.
func (d *Data) Seal(text, about string) string {
	nonce := make([]byte, d.seal.NonceSize(), d.seal.NonceSize()+len(text)+d.seal.Overhead())
	rand.Read(nonce)
	return d.sealed(nonce, text, about)
}

// SealAlike is Seal, save that equal texts for one place look equal: the nonce is an HMAC of both.
func (d *Data) SealAlike(text, about string) string {
	sum := d.Sum("nonce", text, about)
	return d.sealed(sum[:d.seal.NonceSize():d.seal.NonceSize()], text, about)
}

func (d *Data) sealed(nonce []byte, text, about string) string {
	out := d.seal.Seal(nonce, nonce, []byte(text), []byte(about))
	return d.id + "." + base64.RawURLEncoding.EncodeToString(out)
}

// Open decrypts what Seal returned for the same place. The error is [ErrSealed].
func (d *Data) Open(sealed, about string) (string, error) {
	id, body, ok := strings.Cut(sealed, ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if n := d.seal.NonceSize(); ok && err == nil && id == d.id && len(raw) > n {
		if text, err := d.seal.Open(nil, raw[:n], raw[n:], []byte(about)); err == nil {
			return string(text), nil
		}
	}
	return "", ErrSealed
}
