package sandbox

import (
	"sync"
	"unicode/utf8"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// limited keeps what is written up to a number of bytes, and says once that there was more.
type limited struct {
	mu   sync.Mutex
	buf  []byte
	most int64
	over func()
	full bool
}

// Write takes everything, so that the writer is not held up before it is ended.
func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.most - int64(len(l.buf))
	if int64(len(p)) <= room {
		l.buf = append(l.buf, p...)
		return len(p), nil
	}
	l.buf = append(l.buf, p[:max(room, 0)]...)
	if !l.full {
		l.full = true
		l.over()
	}
	return len(p), nil
}

func (l *limited) bytes() ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf, l.full
}

// tail keeps the last of what is written.
type tail struct {
	mu   sync.Mutex
	buf  []byte
	most int
}

const tailKept = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if n >= t.most {
		t.buf = append(t.buf[:0], p[n-t.most:]...)
		return n, nil
	}
	if cut := len(t.buf) + n - t.most; cut > 0 {
		t.buf = append(t.buf[:0], t.buf[cut:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.buf...)
}

// words is the end of a text that somebody else wrote, as it can be shown.
func words(b []byte) string {
	if n := len(b) - action.MaxText/2; n > 0 {
		b = b[n:]
		for len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}
	return action.Cut(action.Visible(trim(string(b))))
}

func trim(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '\n' || s[len(s)-1] == '\r' || s[len(s)-1] == ' ') {
		s = s[:len(s)-1]
	}
	return s
}
