package engine

import (
	"sync"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Room is memory for what the decision about one call, and the run of it, hand out, so that it need not be allocated piece
// by piece. It belongs to one call, of which one thing happens after the other. Its zero value is ready.
type Room struct {
	grounds grounds
	given   bool // the grounds are somebody's
	learned ledger.Observed
	page    *page
}

// Lend has the transactions of begin and settle written into memory that is used again after Return. It is for stores that
// keep nothing of a transaction but its strings once they have answered: then at most one is in use at a time.
func (m *Room) Lend() { m.page = pages.Get().(*page) }

// Return gives back what Lend lent: no transaction of the call is read any more.
func (m *Room) Return() {
	if p := m.page; p != nil {
		m.page = nil
		clear(p.room[:cap(p.room)])
		p.Txn = txn.Txn{}
		pages.Put(p)
	}
}

var pages = sync.Pool{New: func() any {
	p := new(longPage)
	p.room = p.of[:0]
	return &p.page
}}

// transaction returns an empty transaction with room for what most hold.
func (m *Room) transaction() *page {
	if m == nil || m.page == nil {
		p := new(shortPage)
		p.room = p.of[:0]
		return &p.page
	}
	return m.page
}

// begin returns the grounds of a begin, once.
func (m *Room) begin() *grounds {
	if m == nil || m.given {
		return new(grounds)
	}
	m.given = true
	return &m.grounds
}

// lesson returns room for what a settle teaches.
func (m *Room) lesson() *ledger.Observed {
	if m == nil {
		return new(ledger.Observed)
	}
	return &m.learned
}

// page is a transaction with room for what most hold.
type page struct {
	txn.Txn
	room []txn.Clause
}

// A page that is used again may have room for more than one that is not.
type (
	longPage struct {
		page
		of [24]txn.Clause
	}
	shortPage struct {
		page
		of [12]txn.Clause
	}
)

// sheet is an event that is used again once it is written: on a stack it would take much of it, and calls are made on small
// ones.
type sheet struct{ ledger.Event }

var sheets = sync.Pool{New: func() any { return new(sheet) }}

// blank returns an empty event, until done.
func blank() *sheet { return sheets.Get().(*sheet) }

func (s *sheet) done() {
	s.Event = ledger.Event{}
	sheets.Put(s)
}
