package chat

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// MaxReply is the longest reply that a Model reads, in bytes: more than any model says in one.
const MaxReply = 8 << 20

// tooLong are the words with which providers and servers say that a prompt does not fit, in lower case.
var tooLong = []string{
	"context_length_exceeded", "exceed_context_size_error", "request_too_large", "maximum context length", "context length", "context window",
	"available context size", "prompt is too long", "input is too long", "exceeds the maximum number of tokens",
}

// Refusal is the error of a Model whose provider refused a request, with a status, or broke a stream off to say why, with
// status 0. It wraps ErrTooLong or ErrCut where it is about that. The words of the provider are kept, without the key.
func Refusal(who string, status int, code, message, key string) error {
	message = cut(redact(message, key), 300)
	code = cut(redact(code, key), 60)
	text := who + ":"
	if status != 0 {
		text += fmt.Sprintf(" %d %s", status, http.StatusText(status))
	}
	for _, s := range []string{code, message} {
		if s != "" {
			text += " " + s
		}
	}
	said := strings.ToLower(code + " " + message)
	switch {
	case status == 0 || status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity || status >= 500:
		for _, words := range tooLong {
			if strings.Contains(said, words) {
				return fmt.Errorf("%s: %w", text, ErrTooLong)
			}
		}
	}
	if status == 0 {
		return fmt.Errorf("%s: %w", text, ErrCut)
	}
	return errors.New(text)
}

// Broken is the error of a Model whose connection failed. Where an answer had begun it wraps ErrCut.
func Broken(who string, err error, key string, begun bool) error {
	text := who + ": " + cut(redact(err.Error(), key), 300)
	if !begun {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %w", text, ErrCut)
}

// redact takes a key out of a text, should a server have repeated it, and with it every part that is most of it.
func redact(text, key string) string {
	if len(key) < 8 {
		return text
	}
	text = strings.ReplaceAll(text, key, "***")
	return strings.ReplaceAll(text, key[:len(key)*3/4], "***")
}
