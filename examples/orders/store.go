package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/seed-ab2cfece/delta-agents/action"
)

//go:embed schema.sql
var schemaSQL string

// store is the desk's database. Every method is one transaction: all of it happens or nothing does.
type store struct{ db *sql.DB }

// openStore opens a new database in memory. It lives on its one connection.
func openStore(ctx context.Context) (*store, error) {
	db, err := sql.Open("sqlite", "file::memory:?_pragma=foreign_keys(1)")
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, schemaSQL); err != nil {
		return nil, errors.Join(fmt.Errorf("create tables: %w", err), db.Close())
	}
	return &store{db}, nil
}

func (s *store) close() error { return s.db.Close() }

// within runs f in a transaction and commits it unless f fails.
func (s *store) within(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// move takes an order from one status to the next; it fails where the order is elsewhere.
func move(ctx context.Context, tx *sql.Tx, id, from, to string) error {
	r, err := tx.ExecContext(ctx, `UPDATE orders SET status = ? WHERE id = ? AND status = ?`, to, id, from)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("order %s is not %s", id, from))
	}
	return nil
}

func (s *store) order(ctx context.Context, id string) (Order, error) {
	o := Order{ID: id}
	err := s.db.QueryRowContext(ctx, `SELECT customer, cents, status FROM orders WHERE id = ?`, id).Scan(&o.Customer, &o.Cents, &o.Status)
	if errors.Is(err, sql.ErrNoRows) {
		return o, fmt.Errorf("there is no order %s", id)
	}
	return o, err
}

// confirm may be repeated: confirming a confirmed order changes nothing.
func (s *store) confirm(ctx context.Context, id string) error {
	return s.within(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET status = 'confirmed' WHERE id = ? AND status = 'new'`, id)
		return err
	})
}

// charge takes the money and writes that down; where the provider refuses, nothing is written. Money that was taken but
// not written down is neither a success nor a failure: that is what action.Unknown is for.
func (s *store) charge(ctx context.Context, p *provider, id, call string) (Charged, error) {
	charged, taken := Charged{ID: id}, false
	err := s.within(ctx, func(tx *sql.Tx) error {
		if err := move(ctx, tx, id, "confirmed", "charged"); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, `INSERT INTO charges (order_id, cents, call) SELECT id, cents, ? FROM orders WHERE id = ? RETURNING cents`, call, id).
			Scan(&charged.Cents)
		if err != nil {
			return err
		}
		err = p.take(charged.Cents)
		taken = err == nil
		return err
	})
	if err != nil && taken {
		return charged, action.Unknown(err)
	}
	return charged, err
}

func (s *store) refund(ctx context.Context, id, call string) error {
	return s.within(ctx, func(tx *sql.Tx) error {
		if err := move(ctx, tx, id, "charged", "refunded"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO refunds (charge_id, call) SELECT id, ? FROM charges WHERE order_id = ?`, call, id)
		return err
	})
}

func (s *store) mail(ctx context.Context, id, text string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO mails (order_id, text) VALUES (?, ?)`, id, text)
	return err
}

func (s *store) gift(ctx context.Context, id string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO gifts (order_id) VALUES (?)`, id)
	return err
}

// row is an order and what was done to it.
type row struct {
	Order
	charges, refunds, mails, gifts int
}

func (s *store) rows(ctx context.Context) ([]row, error) {
	found, err := s.db.QueryContext(ctx, `
		SELECT id, customer, cents, status,
			(SELECT count(*) FROM charges c WHERE c.order_id = o.id),
			(SELECT count(*) FROM refunds r JOIN charges c ON c.id = r.charge_id WHERE c.order_id = o.id),
			(SELECT count(*) FROM mails m WHERE m.order_id = o.id),
			(SELECT count(*) FROM gifts g WHERE g.order_id = o.id)
		FROM orders o ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var out []row
	for found.Next() {
		var r row
		if err := found.Scan(&r.ID, &r.Customer, &r.Cents, &r.Status, &r.charges, &r.refunds, &r.mails, &r.gifts); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, found.Err()
}

// provider stands in for a payment provider: the one thing here that is not real. Down, it refuses before any money
// moves; a real one may also fail to answer, and then the function returns action.Unknown.
type provider struct {
	mu    sync.Mutex
	down  bool
	calls int
}

func (p *provider) take(int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.down {
		return errors.New("payment provider: 503 service unavailable")
	}
	return nil
}

func (p *provider) set(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

func (p *provider) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}
