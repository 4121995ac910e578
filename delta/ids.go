package delta

import (
	"crypto/rand"
	"strconv"
	"sync"
)

// idSource makes ids of 80 random bits in base 32, many at a time: each is a part of one text.
type idSource struct {
	mu   sync.Mutex
	text string
}

const (
	idLen   = 16
	idBatch = 64
)

const idLetters = "abcdefghijklmnopqrstuvwxyz234567"

func (s *idSource) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == "" {
		var raw [idLen * idBatch]byte
		_, _ = rand.Read(raw[:]) // never fails
		for i, b := range raw {
			raw[i] = idLetters[b%32]
		}
		s.text = string(raw[:])
	}
	id := s.text[:idLen]
	s.text = s.text[idLen:]
	return id
}

// ownerSource names tries at calls "engine.n": two tries of one engine must not take each other's lease for their own.
type ownerSource struct {
	mu     sync.Mutex
	engine string
	n      int64
	text   string
	ends   [idBatch]int
	at     int
}

func (s *ownerSource) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == len(s.ends) || s.text == "" {
		s.fill()
	}
	from := 0
	if s.at > 0 {
		from = s.ends[s.at-1]
	}
	s.at++
	return s.text[from:s.ends[s.at-1]]
}

func (s *ownerSource) fill() {
	var b []byte
	for i := range s.ends {
		s.n++
		b = append(append(b, s.engine...), '.')
		b = strconv.AppendInt(b, s.n, 10)
		s.ends[i] = len(b)
	}
	s.text, s.at = string(b), 0
}
