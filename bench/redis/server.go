package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a throw-away server without persistence.
type server struct {
	addr    string
	version string
	dir     string
	cmd     *exec.Cmd
	client  *redis.Client // to look and to measure, not the engine's
}

func startServer() (*server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("needs redis-server: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		return nil, err
	}
	s := &server{addr: "127.0.0.1:" + strconv.Itoa(port), dir: dir}
	s.cmd = exec.Command(path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", s.addr) // first: the client logs what it cannot reach
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(until) {
			s.stop()
			return nil, fmt.Errorf("the server does not answer: %w", err)
		}
	}
	s.client = redis.NewClient(&redis.Options{Addr: s.addr})
	s.version = "Redis " + field(s.client.Info(context.Background(), "server").Val(), "redis_version:")
	return s, nil
}

func (s *server) stop() {
	if s.client != nil {
		_ = s.client.Close()
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// field returns what follows the name in an answer to INFO, up to the end of the line.
func field(info, name string) string {
	_, after, _ := strings.Cut(info, name)
	value, _, _ := strings.Cut(after, "\r")
	return value
}

// spent is how long the server worked on a command that clients sent, evalsha say, in µs since it started. What scripts call
// is in the time of the scripts.
func (s *server) spent(ctx context.Context, command string) (us float64, err error) {
	info, err := s.client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(part(field(info, "cmdstat_"+command+":"), "usec="), 64)
	return n, err
}

func part(list, name string) string {
	for _, p := range strings.Split(list, ",") {
		if v, ok := strings.CutPrefix(p, name); ok {
			return v
		}
	}
	return "0"
}
