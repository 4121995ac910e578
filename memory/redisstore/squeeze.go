package redisstore

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Long values of cells of a task or an agent stand compressed, behind a byte that says so: an agent's card, a task with much in
// it. Each call makes the server read them for their version alone, and what it reads costs it by the byte.
const (
	squeezed     = "\x02"
	squeezedFrom = 512     // bytes, below which it is not worth it
	squeezedMost = 1 << 28 // bytes that a value may have that was compressed
)

// squeezer is a writer and where it writes to, used again.
type squeezer struct {
	to bytes.Buffer
	w  *flate.Writer
}

var squeezers = sync.Pool{New: func() any {
	s := &squeezer{}
	s.w, _ = flate.NewWriter(&s.to, flate.BestSpeed) // the level is a valid one
	return s
}}

// squeeze returns what is stored for a value.
func squeeze(val string) string {
	marked := strings.HasPrefix(val, squeezed)
	if len(val) < squeezedFrom && !marked {
		return val
	}
	s := squeezers.Get().(*squeezer)
	defer squeezers.Put(s)
	s.to.Reset()
	s.to.WriteString(squeezed)
	s.w.Reset(&s.to)
	_, _ = io.WriteString(s.w, val) // a buffer takes all
	_ = s.w.Close()
	if s.to.Len() >= len(val)-len(val)/8 && !marked {
		return val
	}
	return s.to.String()
}

// unsqueeze returns the value that is stored so.
func unsqueeze(stored string) (string, error) {
	if !strings.HasPrefix(stored, squeezed) {
		return stored, nil
	}
	b, err := io.ReadAll(io.LimitReader(flate.NewReader(strings.NewReader(stored[len(squeezed):])), squeezedMost+1))
	if err == nil && len(b) > squeezedMost {
		err = fmt.Errorf("it has more than %d bytes", squeezedMost)
	}
	if err != nil {
		return "", fmt.Errorf("a compressed value: %w", err)
	}
	return string(b), nil
}
