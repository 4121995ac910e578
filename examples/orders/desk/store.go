package desk

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

// Store is the desk's database. Every method is one transaction: all of it happens or nothing does.
type Store struct{ db *sql.DB }

// OpenStore opens a new database in memory. It lives on its one connection.
func OpenStore(ctx context.Context) (*Store, error) {
	db, err := sql.Open("sqlite", "file::memory:?_pragma=foreign_keys(1)")
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, schemaSQL); err != nil {
		return nil, errors.Join(fmt.Errorf("create tables: %w", err), db.Close())
	}
	return &Store{db}, nil
}

// Close drops the database.
func (s *Store) Close() error { return s.db.Close() }

// within runs f in a transaction and commits it unless f fails.
func (s *Store) within(ctx context.Context, f func(*sql.Tx) error) error {
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

func (s *Store) order(ctx context.Context, id string) (Order, error) {
	o := Order{ID: id}
	err := s.db.QueryRowContext(ctx, `SELECT customer, cents, status FROM orders WHERE id = ?`, id).Scan(&o.Customer, &o.Cents, &o.Status)
	if errors.Is(err, sql.ErrNoRows) {
		return o, fmt.Errorf("there is no order %s", id)
	}
	return o, err
}

// confirm may be repeated: confirming a confirmed order changes nothing.
func (s *Store) confirm(ctx context.Context, id string) error {
	return s.within(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET status = 'confirmed' WHERE id = ? AND status = 'new'`, id)
		return err
	})
}

// charge takes the money and writes that down; where the provider refuses, nothing is written. Money that was taken but
// not written down is neither a success nor a failure: that is what action.Unknown is for.
func (s *Store) charge(ctx context.Context, p *Provider, id, call string) (Charged, error) {
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

func (s *Store) refund(ctx context.Context, id, call string) error {
	return s.within(ctx, func(tx *sql.Tx) error {
		if err := move(ctx, tx, id, "charged", "refunded"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO refunds (charge_id, call) SELECT id, ? FROM charges WHERE order_id = ?`, call, id)
		return err
	})
}

func (s *Store) mail(ctx context.Context, id, text string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO mails (order_id, text) VALUES (?, ?)`, id, text)
	return err
}

func (s *Store) gift(ctx context.Context, id string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO gifts (order_id) VALUES (?)`, id)
	return err
}

// Row is an order and what was done to it.
type Row struct {
	Order
	Charges, Refunds, Mails, Gifts int
}

// Rows lists every order with what was done to it.
func (s *Store) Rows(ctx context.Context) ([]Row, error) {
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
	var out []Row
	for found.Next() {
		var r Row
		if err := found.Scan(&r.ID, &r.Customer, &r.Cents, &r.Status, &r.Charges, &r.Refunds, &r.Mails, &r.Gifts); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, found.Err()
}

// Provider stands in for a payment provider: the one thing here that is not real. Down, it refuses before any money
// moves; a real one may also fail to answer, and then the function returns action.Unknown.
type Provider struct {
	mu    sync.Mutex
	down  bool
	calls int
}

func (p *Provider) take(int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.down {
		return errors.New("payment provider: 503 service unavailable")
	}
	return nil
}

// Set takes the provider down, or brings it back.
func (p *Provider) Set(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Asked counts the payments that were asked of it.
func (p *Provider) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}
