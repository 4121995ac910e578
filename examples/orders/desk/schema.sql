-- The order desk's own database. The engine knows nothing of it: what it governs is who may call what writes here.

CREATE TABLE orders (
	id       TEXT PRIMARY KEY,
	customer TEXT NOT NULL,
	cents    INTEGER NOT NULL CHECK (cents > 0),
	status   TEXT NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'confirmed', 'charged', 'refunded'))
);

-- Nothing here forbids two charges of one order: that it happens once is the engine's promise, and the tests count rows.
CREATE TABLE charges (
	id       INTEGER PRIMARY KEY,
	order_id TEXT NOT NULL REFERENCES orders (id),
	cents    INTEGER NOT NULL,
	call     TEXT NOT NULL -- the execution that wrote it, as the ledger names it
);

CREATE TABLE refunds (
	id        INTEGER PRIMARY KEY,
	charge_id INTEGER NOT NULL REFERENCES charges (id),
	call      TEXT NOT NULL
);

CREATE TABLE mails (
	id       INTEGER PRIMARY KEY,
	order_id TEXT NOT NULL REFERENCES orders (id),
	text     TEXT NOT NULL
);

CREATE TABLE gifts (
	id       INTEGER PRIMARY KEY,
	order_id TEXT NOT NULL REFERENCES orders (id)
);

INSERT INTO orders (id, customer, cents) VALUES
	('ORD-1', 'Ada', 4200),
	('ORD-2', 'Grace', 9900),
	('ORD-3', 'Edsger', 1850);
