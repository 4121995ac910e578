package delta

import (
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
)

// idSource makes ids of 80 random bits in base 32, many at a time: each is a part of one text. Goroutines that run at the
// same time do not wait for each other.
type idSource struct{ pool sync.Pool }

// idText is what is left of a text of ids.
type idText struct{ text string }

const (
	idLen   = 16
	idBatch = 64
)

const idLetters = "abcdefghijklmnopqrstuvwxyz234567"

func (s *idSource) next() string {
	t, _ := s.pool.Get().(*idText)
	if t == nil {
		t = &idText{}
	}
	if t.text == "" {
		var raw [idLen * idBatch]byte
		_, _ = rand.Read(raw[:]) // never fails
		for i, b := range raw {
			raw[i] = idLetters[b%32]
		}
		t.text = string(raw[:])
	}
	id := t.text[:idLen]
	t.text = t.text[idLen:]
	s.pool.Put(t)
	return id
}

// ownerSource names tries at calls "engine.n": two tries of one engine must not take each other's lease for their own.
type ownerSource struct {
	engine string
	n      atomic.Int64 // the last number that a text holds
	pool   sync.Pool
}

// ownerText is a text of names and where each of them ends.
type ownerText struct {
	text string
	ends [idBatch]int
	at   int
}

func (s *ownerSource) next() string {
	t, _ := s.pool.Get().(*ownerText)
	if t == nil {
		t = &ownerText{}
	}
	if t.at == len(t.ends) || t.text == "" {
		t.fill(s.engine, s.n.Add(idBatch)-idBatch)
	}
	from := 0
	if t.at > 0 {
		from = t.ends[t.at-1]
	}
	t.at++
	name := t.text[from:t.ends[t.at-1]]
	s.pool.Put(t)
	return name
}

func (t *ownerText) fill(engine string, after int64) {
	var b []byte
	for i := range t.ends {
		b = append(append(b, engine...), '.')
		b = strconv.AppendInt(b, after+int64(i)+1, 10)
		t.ends[i] = len(b)
	}
	t.text, t.at = string(b), 0
}
