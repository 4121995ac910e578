package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/seed-ab2cfece/delta-agents/audit"
)

// NewPositions returns the positions of a stream, for the trail that writes it: what the stream itself has of each ledger,
// noted by the same script that appends. So a process that starts, or starts again, goes on exactly behind the last entry
// there is, whoever wrote it and however that process ended.
//
// What Save adds is which tasks have ended, of which nothing more is expected: a hash "{Stream}:ended".
func NewPositions(c Config) (audit.Positions, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	return &positions{Config: c, ended: map[string]bool{}}, nil
}

type positions struct {
	Config
	ended map[string]bool // as the server knows
}

// patience bounds one access to the server; pages is how much is read or written at a time.
const (
	patience = 10 * time.Second
	pages    = 1000
)

func (p *positions) within(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f(ctx); err != nil {
		return fmt.Errorf("audit redis: positions: %w", err)
	}
	return nil
}

// Load implements [audit.Positions].
func (p *positions) Load() (map[string]audit.Position, error) {
	all := map[string]audit.Position{}
	err := p.each(p.key()+":seq", func(ledger, seq string) error {
		n, err := strconv.ParseInt(seq, 10, 64)
		if err != nil {
			return fmt.Errorf("of %s: %w", ledger, err)
		}
		all[ledger] = audit.Position{Seq: n}
		return nil
	})
	if err == nil {
		err = p.each(p.key()+":ended", func(ledger, _ string) error {
			if at, there := all[ledger]; there {
				at.Ended = true
				all[ledger] = at
				p.ended[ledger] = true
			}
			return nil
		})
	}
	return all, err
}

// each passes the fields of a hash, page by page; one may be passed twice.
func (p *positions) each(key string, pass func(field, value string) error) error {
	for cursor := uint64(0); ; {
		var page []string
		err := p.within(func(ctx context.Context) (err error) {
			page, cursor, err = p.Client.HScan(ctx, key, cursor, "*", pages).Result()
			return err
		})
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(page); i += 2 {
			if err := pass(page[i], page[i+1]); err != nil {
				return fmt.Errorf("audit redis: positions: %w", err)
			}
		}
		if cursor == 0 {
			return nil
		}
	}
}

// Save implements [audit.Positions]. How far each ledger got is in the server already.
func (p *positions) Save(all map[string]audit.Position) error {
	var news []string
	for ledger, at := range all {
		if at.Ended && !p.ended[ledger] {
			news = append(news, ledger)
		}
	}
	for len(news) > 0 {
		page := news[:min(pages, len(news))]
		news = news[len(page):]
		fields := make([]any, 0, 2*len(page))
		for _, ledger := range page {
			fields = append(fields, ledger, "1")
		}
		if err := p.within(func(ctx context.Context) error { return p.Client.HSet(ctx, p.key()+":ended", fields...).Err() }); err != nil {
			return err
		}
		for _, ledger := range page {
			p.ended[ledger] = true
		}
	}
	for ledger := range p.ended { // as bounded as what the trail remembers
		if _, there := all[ledger]; !there {
			delete(p.ended, ledger)
		}
	}
	return nil
}
