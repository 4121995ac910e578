package memory

import (
	"sort"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// book is a ledger in pages, so that a long one is not copied as it grows.
type book struct {
	pages []page
	n     int64 // records ever written
	gone  int64 // of them, the first ones that were dropped
}

type page struct {
	first   int64 // sequence of its first record
	records []txn.Stored
}

// Records of the first page and of the largest.
const (
	firstPage = 8
	fullPage  = 1024
)

// write appends a record and returns its sequence.
func (b *book) write(now int64, val string) int64 {
	last := len(b.pages) - 1
	if last < 0 || len(b.pages[last].records) == cap(b.pages[last].records) {
		room := firstPage
		if last >= 0 {
			room = min(fullPage, 2*cap(b.pages[last].records))
		}
		b.pages = append(b.pages, page{first: b.n + 1, records: make([]txn.Stored, 0, room)})
		last++
	}
	b.n++
	p := &b.pages[last]
	p.records = append(p.records, txn.Stored{Seq: b.n, At: now, Val: val})
	return b.n
}

// find returns the page that holds a record; the record must exist.
func (b *book) find(seq int64) int {
	if last := len(b.pages) - 1; b.pages[last].first <= seq { // what is sealed was written just now
		return last
	}
	return sort.Search(len(b.pages), func(i int) bool { return b.pages[i].first > seq }) - 1
}

// link gives a record its link, where it exists and has none.
func (b *book) link(seq int64, link string) {
	if seq <= b.gone || seq > b.n {
		return
	}
	p := &b.pages[b.find(seq)]
	if r := &p.records[seq-p.first]; r.Link == "" {
		r.Link = link
	}
}

// read returns a copy of up to limit records from a sequence on.
func (b *book) read(from int64, limit int) []txn.Stored {
	from = max(from, b.gone+1)
	if from > b.n || limit <= 0 {
		return nil
	}
	left := min(int64(limit), b.n-from+1)
	out := make([]txn.Stored, 0, left)
	for i := b.find(from); left > 0; i++ {
		p := &b.pages[i]
		part := p.records[from-p.first:]
		part = part[:min(left, int64(len(part)))]
		out = append(out, part...)
		from, left = from+int64(len(part)), left-int64(len(part))
	}
	return out
}

// ends reports whether the book has so many records, of which the last one has that link.
func (b *book) ends(n int64, link string) bool {
	last := b.read(n, 1)
	return b.n == n && (n == 0 || len(last) == 1 && last[0].Link == link)
}

// cut drops the records up to one that is not the last. Pages go as a whole, and of the first one left what is dropped.
func (b *book) cut(upto int64) {
	if upto <= b.gone {
		return
	}
	b.pages = append([]page(nil), b.pages[b.find(upto+1):]...)
	p := &b.pages[0]
	p.records = append([]txn.Stored(nil), p.records[upto+1-p.first:]...)
	p.first, b.gone = upto+1, upto
}
