package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// Client uses one server. It connects when it is first needed and again, after a pause, when the server went away; all
// calls share the connection. It is safe for concurrent use. Close it.
type Client struct {
	cfg    Config
	ctx    context.Context // the client's: ends the server
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	conn     *conn
	trying   *attempt
	failures int
	resting  time.Time                 // nothing is tried before
	listing  map[string]*remote        // as the server listed them last, by their names there
	skipped  []Skipped                 // of that listing
	given    map[*tool.Registry]givens // what was registered where
	owned    sync.WaitGroup
}

// conn is one connection.
type conn struct {
	session *sdk.ClientSession
	changed chan struct{} // the server says that its list changed
	wire    *wire
	line    line
	since   time.Time
}

// wire is a transport that remembers its connection, to cut it.
type wire struct {
	sdk.Transport
	mu   sync.Mutex
	conn sdk.Connection
	off  bool
}

// Connect implements sdk.Transport.
func (w *wire) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := w.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = conn
	if w.off {
		_ = conn.Close()
	}
	return conn, nil
}

// cut closes the connection, whatever is under way on it.
func (w *wire) cut() {
	w.mu.Lock()
	conn := w.conn
	w.off = true
	w.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// stuck is how long a call may go on that was told to stop, before its connection is cut: the server does not read.
const stuck = 2 * time.Second

// unstick cuts the connection where a call does not return; the function it returns says that it did.
func (k *conn) unstick(ctx context.Context) (returned func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		patience := time.NewTimer(stuck)
		defer patience.Stop()
		select {
		case <-done:
		case <-patience.C:
			k.wire.cut()
		}
	})
	return func() { close(done); stop() }
}

// ErrClosed answers calls of a client that is closed.
var ErrClosed = errors.New("mcp: the client is closed")

// Open checks a configuration and returns a client. It does not connect.
func Open(cfg Config) (*Client, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, given: map[*tool.Registry]givens{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c, nil
}

// Close ends the connection, and the server where this client started it. Calls under way fail. Tools that were registered
// are taken out of their registries.
func (c *Client) Close() error {
	c.cancel(ErrClosed)
	c.mu.Lock()
	last := c.trying // there will be no further one
	c.mu.Unlock()
	if last != nil {
		<-last.done
	}
	c.mu.Lock()
	conn := c.conn
	c.listing = nil
	c.mu.Unlock()
	c.sync()
	if conn != nil {
		_ = conn.session.Close()
	}
	c.owned.Wait()
	return nil
}

// Ready connects where there is no connection, and reports why there can be none now. It is the health of the tools.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.session(ctx)
	return err
}

// attempt is one at connecting. Whoever needs the connection waits for it and may go away; the attempt is the client's.
type attempt struct {
	done chan struct{}
	conn *conn
	err  error
}

// session returns the connection, made where there is none.
func (c *Client) session(ctx context.Context) (*conn, error) {
	k, a, err := c.standing()
	if k != nil || err != nil {
		return k, err
	}
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// standing returns the connection that stands, or the attempt at one, or why none may be made now.
func (c *Client) standing() (*conn, *attempt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := context.Cause(c.ctx); err != nil {
		return nil, nil, err
	}
	if c.conn != nil || c.trying != nil {
		return c.conn, c.trying, nil
	}
	if left := time.Until(c.resting); left > 0 {
		return nil, nil, fmt.Errorf("mcp: the server %q failed and is left alone for %v", c.cfg.Name, left.Round(time.Millisecond))
	}
	a := &attempt{done: make(chan struct{})}
	c.trying = a
	c.owned.Go(func() {
		defer close(a.done)
		a.conn, a.err = c.connect()
		if a.err != nil {
			a.err = fmt.Errorf("mcp: the server %q cannot be used: %w", c.cfg.Name, a.err)
			c.rest()
		}
		c.mu.Lock()
		c.trying = nil
		c.mu.Unlock()
	})
	return nil, a, nil
}

// rest leaves a server alone for a while, longer each time.
func (c *Client) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause := c.cfg.Pause << min(c.failures, 20)
	if pause > c.cfg.LongPause || pause <= 0 {
		pause = c.cfg.LongPause
	}
	c.failures++
	c.resting = time.Now().Add(pause)
}

// connect makes a connection and lists the tools, so that no call goes to a tool that is no longer what was imported.
func (c *Client) connect() (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.cfg.ConnectTime, fmt.Errorf("it did not answer within %v", c.cfg.ConnectTime))
	defer cancel()
	said := &noise{log: func(s string) { c.cfg.Log.Debug("an MCP server writes", "server", c.cfg.Name, "text", s) }}
	alive, end := context.WithCancel(c.ctx)
	k := &conn{line: line{noise: said}, changed: make(chan struct{}, 1), since: time.Now()}
	transport, err := c.cfg.Server.reach(alive, &c.cfg, &k.line)
	if err != nil {
		end()
		return nil, err
	}
	k.wire = &wire{Transport: transport}
	defer context.AfterFunc(ctx, k.wire.cut)() // what is written to somebody who does not read is not stopped by ctx
	client := sdk.NewClient(&sdk.Implementation{Name: "delta-agents", Version: "1"}, &sdk.ClientOptions{
		Logger: c.cfg.Log.With("server", c.cfg.Name), Capabilities: &sdk.ClientCapabilities{}, // nothing that a server may ask for
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case k.changed <- struct{}{}:
			default: // it is said already
			}
		},
	})
	if k.session, err = client.Connect(ctx, k.wire, nil); err == nil {
		err = c.list(ctx, k)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		k.wire.cut()
		if k.session != nil {
			_ = k.session.Close()
		}
		end()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if s := said.words(); s != "" {
			err = fmt.Errorf("%w; it wrote: %s", err, action.Cut(s))
		}
		return nil, err
	}
	c.mu.Lock()
	c.conn = k
	c.mu.Unlock()
	c.sync()
	c.owned.Go(func() { defer end(); c.tend(k) })
	return k, nil
}

// steady is how long a connection must have stood for earlier failures to be forgotten.
const steady = 30 * time.Second

// tend follows a connection until it is gone.
func (c *Client) tend(k *conn) {
	done := make(chan struct{})
	c.owned.Go(func() {
		defer close(done)
		_ = k.session.Wait() // why is told to the calls under way
	})
	for {
		select {
		case <-k.changed:
			c.relist(k)
		case <-done:
			c.lost(k)
			return
		}
	}
}

// lost notes that a connection is gone.
func (c *Client) lost(k *conn) {
	_ = k.session.Close()
	c.mu.Lock()
	if c.conn == k {
		c.conn = nil
	}
	if time.Since(k.since) > steady {
		c.failures = 0
	}
	c.mu.Unlock()
	if c.ctx.Err() == nil {
		c.cfg.Log.Warn("an MCP server went away", "server", c.cfg.Name)
		c.rest()
	}
}

// relist asks for the tools again. Of a server that cannot say what its tools are none is used.
func (c *Client) relist(k *conn) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.ConnectTime)
	defer cancel()
	if err := c.list(ctx, k); err != nil && c.ctx.Err() == nil {
		c.cfg.Log.Warn("the tools of an MCP server cannot be listed again", "server", c.cfg.Name, "error", err)
		c.mu.Lock()
		c.listing, c.skipped = nil, nil
		c.mu.Unlock()
		_ = k.session.Close()
	}
	c.sync()
}
