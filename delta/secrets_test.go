package delta_test

import (
	"context"
	"encoding/hex"
	"errors"
	"sync/atomic"
)

// lockedRing is a key ring that can be locked: a key service that does not answer.
type lockedRing struct{ locked atomic.Bool }

var errLocked = errors.New("the key service does not answer")

func (r *lockedRing) Wrap(_ context.Context, key []byte, _ string) (string, error) {
	if r.locked.Load() {
		return "", errLocked
	}
	return hex.EncodeToString(key), nil
}

func (r *lockedRing) Unwrap(_ context.Context, wrapped, _ string) ([]byte, error) {
	if r.locked.Load() {
		return nil, errLocked
	}
	return hex.DecodeString(wrapped)
}
