package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Server is where a server is and how it is reached: made by [Stdio], [HTTP] or [Using].
type Server interface {
	check() error
	// reach makes a transport for one connection; ctx is the client's, which ends the server with it.
	reach(ctx context.Context, cfg *Config, l *line) (sdk.Transport, error)
}

// line is what is seen of a connection from outside the protocol.
type line struct {
	noise io.Writer
	sent  atomic.Int64 // how often anything was sent, or begun to be; negative: it is not seen
}

// unseen is sent where nobody counts.
const unseen = -1 << 62

// Launcher starts programs that go on running and returns their standard input and output; closing both ends the program
// and all that it started, and so does the end of ctx. A *sandbox.Sandbox is one. What is not a sandbox confines nothing.
type Launcher interface {
	Launch(ctx context.Context, stderr io.Writer, path string, args ...string) (io.ReadWriteCloser, error)
}

// Stdio is a server that is a program on this machine, started by a launcher for each connection.
func Stdio(l Launcher, path string, args ...string) Server {
	return &stdio{l, path, append([]string(nil), args...)}
}

type stdio struct {
	launcher Launcher
	path     string
	args     []string
}

func (s *stdio) check() error {
	if s.launcher == nil {
		return errors.New("a program needs a launcher: pass a sandbox")
	}
	if s.path == "" {
		return errors.New("the program has no path")
	}
	return nil
}

func (s *stdio) reach(ctx context.Context, cfg *Config, l *line) (sdk.Transport, error) {
	rwc, err := s.launcher.Launch(ctx, l.noise, s.path, s.args...)
	if err != nil {
		return nil, err
	}
	return &sdk.IOTransport{Reader: rwc, Writer: &counted{rwc, &l.sent}, MaxLineLength: cfg.MaxFrame}, nil
}

// counted counts what is written.
type counted struct {
	io.WriteCloser
	sent *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.sent.Add(1)
	return c.WriteCloser.Write(p)
}

// HTTPOptions say how a server is reached by HTTP. The zero value sends nothing but the protocol.
type HTTPOptions struct {
	// Headers are sent with each request.
	Headers map[string]string
	// HeadersFromEnv are headers whose values are environment variables: header → variable, read at each request. One that
	// is not set is an error: a request without its credential says something else.
	HeadersFromEnv map[string]string
	// Base makes the requests; nil: a transport of its own. It must not follow redirects.
	Base http.RoundTripper
}

// HTTP is a server at a URL, by streamable HTTP: https, or http on this machine. Redirects to another host are refused, and
// headers are sent to its host alone.
func HTTP(endpoint string, o HTTPOptions) Server { return &remoteHTTP{endpoint: endpoint, o: o} }

type remoteHTTP struct {
	endpoint string
	o        HTTPOptions
}

func (h *remoteHTTP) check() error {
	u, err := url.Parse(h.endpoint)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%q is no URL", action.CutTo(h.endpoint, 200))
	case u.User != nil:
		return errors.New("credentials do not belong into a URL: use HeadersFromEnv")
	case u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q: want https; http only on this machine", action.CutTo(h.endpoint, 200))
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (h *remoteHTTP) reach(ctx context.Context, cfg *Config, l *line) (sdk.Transport, error) {
	u, err := url.Parse(h.endpoint)
	if err != nil {
		return nil, err
	}
	base := h.o.Base
	if base == nil {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: cfg.ConnectTime, IdleConnTimeout: time.Minute,
			DialContext: (&net.Dialer{Timeout: cfg.ConnectTime}).DialContext, ForceAttemptHTTP2: true}
		context.AfterFunc(ctx, own.CloseIdleConnections)
		base = own
	}
	client := &http.Client{
		Transport: &dresser{base: base, host: u.Host, o: h.o, most: int64(cfg.MaxFrame), sent: &l.sent},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != u.Host || r.URL.Scheme != u.Scheme {
				return fmt.Errorf("the server sends elsewhere, to %q, which is not followed", action.CutTo(r.URL.Host, 200))
			}
			if len(via) > 3 {
				return errors.New("the server sends round in circles")
			}
			return nil
		},
	}
	return &sdk.StreamableClientTransport{Endpoint: h.endpoint, HTTPClient: client, MaxRetries: 2, MaxEventSize: cfg.MaxFrame}, nil
}

// dresser gives requests their headers and bounds answers.
type dresser struct {
	base http.RoundTripper
	host string
	o    HTTPOptions
	most int64
	sent *atomic.Int64
}

func (d *dresser) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == d.host {
		r = r.Clone(r.Context())
		for name, v := range d.o.Headers {
			r.Header.Set(name, v)
		}
		for name, variable := range d.o.HeadersFromEnv {
			v, set := os.LookupEnv(variable)
			if !set {
				return nil, fmt.Errorf("the variable %s is not set, which the header %s needs", variable, name)
			}
			r.Header.Set(name, v)
		}
	}
	d.sent.Add(1)
	resp, err := d.base.RoundTrip(r)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") { // events are bounded one by one
		resp.Body = &bounded{ReadCloser: resp.Body, left: d.most}
	}
	return resp, err
}

// bounded is a body that fails where it is too long.
type bounded struct {
	io.ReadCloser
	left int64
}

var errTooLong = errors.New("the server's answer is too long")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// Using is a server reached by any transport of the SDK, made anew for each connection: for servers in this process.
func Using(connect func(context.Context) (sdk.Transport, error)) Server { return using(connect) }

type using func(context.Context) (sdk.Transport, error)

func (u using) check() error {
	if u == nil {
		return errors.New("there is no function that connects")
	}
	return nil
}

func (u using) reach(ctx context.Context, _ *Config, l *line) (sdk.Transport, error) {
	l.sent.Store(unseen)
	return u(ctx)
}

// noise is what a server writes beside the protocol: its end is kept, to be told where it cannot be reached.
type noise struct {
	mu   sync.Mutex
	last []byte
	told int // bytes that were logged
	log  func(string)
}

// Bounds of the noise of one connection.
const (
	noiseKept   = 2 << 10
	noiseLogged = 64 << 10
)

func (n *noise) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told < noiseLogged {
		n.told += len(p)
		n.log(action.Visible(strings.TrimRight(action.Cut(string(p)), "\n")))
	}
	n.last = append(n.last, p...)
	if cut := len(n.last) - noiseKept; cut > 0 {
		n.last = append(n.last[:0], n.last[cut:]...)
	}
	return len(p), nil
}

// words are the last of it.
func (n *noise) words() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return action.Visible(strings.TrimSpace(strings.ToValidUTF8(string(n.last), "")))
}
