package ledger

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// NewKey makes a pair of Ed25519 keys for heads, with randomness from random: secret signs, public is for everybody who
// checks. The name says whose they are, in both; it has no white space and no plus sign. Both are one line of text, in the
// format of signed notes, which other tools read too.
func NewKey(random io.Reader, name string) (secret, public string, err error) {
	if strings.ContainsAny(name, " \t\r\n+") || name == "" {
		return "", "", fmt.Errorf("key name %q: want at least one character, no white space and no plus sign", name)
	}
	return note.GenerateKey(random, name)
}

// Signer signs heads.
type Signer = note.Signer

// NewSigner returns the signer of a secret key that NewKey made. The error never holds the key.
func NewSigner(secret string) (Signer, error) {
	s, err := note.NewSigner(strings.TrimSpace(secret))
	if err != nil {
		return nil, errors.New("not a secret key for heads: want the line that begins with PRIVATE+KEY+")
	}
	return s, nil
}

// SignHead returns the head as a signed note: its text, an empty line, a line for each signature.
func SignHead(h Head, signers ...Signer) (string, error) {
	if len(signers) == 0 {
		return "", errors.New("sign head: no key; give at least one")
	}
	if strings.ContainsRune(h.Name(), '\n') {
		return "", fmt.Errorf("sign head: the name %q has a line break", h.Name())
	}
	b, err := note.Sign(&note.Note{Text: h.Text()}, signers...)
	if err != nil {
		return "", fmt.Errorf("sign head of %s: %w", h.Name(), err)
	}
	return string(b), nil
}

// OpenHead reads a signed head. It is an error unless one of the public keys signed it; signatures of others are passed
// over.
func OpenHead(signed string, public ...string) (Head, error) {
	text, err := openNote(signed, public)
	if err != nil {
		return Head{}, fmt.Errorf("open head: %w", err)
	}
	return ParseHead(text)
}

// openNote returns the text of a note that one of the keys signed.
func openNote(signed string, public []string) (string, error) {
	var known []note.Verifier
	for _, p := range public {
		v, err := note.NewVerifier(strings.TrimSpace(p))
		if err != nil {
			return "", fmt.Errorf("%q is not a public key: %w", p, err)
		}
		known = append(known, v)
	}
	if len(known) == 0 {
		return "", errors.New("no public key; give at least one")
	}
	n, err := note.Open([]byte(signed), note.VerifierList(known...))
	if err != nil {
		return "", err
	}
	return n.Text, nil
}

// UnsignedHead reads the head out of a signed one, or a plain one, without asking who signed: for display, and where the
// file itself is trusted.
func UnsignedHead(text string) (Head, error) {
	if body, _, ok := strings.Cut(text, "\n\n"); ok {
		text = body + "\n"
	}
	return ParseHead(text)
}
