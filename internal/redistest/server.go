// Package redistest starts throw-away Redis servers and clusters for tests.
package redistest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is one running redis-server. Its data lives in a directory of its own, so that it can be killed and started again.
type Server struct {
	Addr   string // host:port on loopback
	Socket string // of the same server

	dir  string
	args []string
	out  bytes.Buffer
	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan error
}

// Path returns where redis-server is, or the server that DELTA_TEST_REDIS names, such as valkey-server. It skips the test where
// that is not installed and the environment does not demand it.
func Path(tb testing.TB) string {
	tb.Helper()
	name := cmp.Or(os.Getenv("DELTA_TEST_REDIS"), "redis-server")
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatal(name + " is not installed; make deps installs redis-server")
		}
		tb.Skip(name + " is not installed; make deps installs redis-server")
	}
	return path
}

// Start starts a server; arguments such as "--appendonly yes" are passed on. It is stopped with the test.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	path := Path(tb)
	dir, err := os.MkdirTemp("", "redis") // short: sockets have short names
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := start(path, dir, args)
	for try := 0; err != nil && try < 5; try++ { // somebody else took the port that was free
		s, err = start(path, dir, args)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}

func start(path, dir string, args []string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: "127.0.0.1:" + strconv.Itoa(port), Socket: filepath.Join(dir, "s"), dir: dir}
	s.args = append([]string{path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--unixsocket", s.Socket, "--dir", dir,
		"--save", "", "--daemonize", "no", "--loglevel", "warning"}, args...)
	return s, s.Start()
}

// Start starts a server that was killed again, with the data its directory holds.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if err := s.cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	s.done = done
	cmd := s.cmd
	go func() { done <- cmd.Wait() }()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = c.Close() }()
	for until := time.Now().Add(time.Minute); ; {
		err := s.ping(c)
		if err == nil || redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "WRONGPASS") {
			return nil
		}
		select {
		case err := <-done:
			return fmt.Errorf("redis-server ended: %w: %s", err, s.out.String())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(until) {
			_ = cmd.Process.Kill()
			return fmt.Errorf("redis-server does not answer: %w: %s", err, s.out.String())
		}
	}
}

func (s *Server) ping(c *redis.Client) error {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second) // first: the client logs what it cannot reach
	if err != nil {
		return err
	}
	_ = conn.Close()
	return c.Ping(context.Background()).Err()
}

// Kill ends the server as a crash does.
func (s *Server) Kill() { s.signal(syscall.SIGKILL) }

// Pause makes the server stop answering, Resume go on.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume is the end of Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	if sig == syscall.SIGKILL {
		<-s.done
		s.cmd = nil
	}
}

// URL is the server's URL.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Client returns a client of the server that is closed with the test.
func (s *Server) Client(tb testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
