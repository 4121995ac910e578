package chattest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Call is a tool call of a reply. Arguments are sent as they are, JSON or not, in several pieces.
type Call struct{ ID, Name, Arguments string }

// Usage is what a reply says was used, in tokens, without overlap.
type Usage struct{ Input, CachedRead, CachedWrite, Output int64 }

// Reply is what the server answers one request with. The zero value is an empty reply.
type Reply struct {
	Text    string
	Refusal string // said, and the reply ends as a refusal does
	Calls   []Call
	Stop    string // the wire's own word for why it stopped; "" is what fits
	Usage   *Usage // nil: it is omitted, as some servers do

	// Faults.
	Status   int           // answered instead, in the wire's error format
	Message  string        // said with Status
	Header   http.Header   // sent with whatever is answered
	TooLong  bool          // the wire's error for a prompt longer than the context
	CutAfter int           // the connection breaks after so many events; 0: it does not
	Failing  bool          // an error event comes in the middle of the stream
	Unknown  bool          // fields and events that are not documented
	Pause    time.Duration // before each event but the first
}

// Request is one that the server got.
type Request struct {
	Path   string
	Header http.Header
	Raw    []byte
	Body   map[string]any
}

// Server is a running provider. It ends with the test.
type Server struct {
	// URL is where it is, without a path.
	URL string

	t       testing.TB
	mu      sync.Mutex
	answer  func(n int, r Request) Reply
	got     []Request
	refused []string
}

// New starts a server that gives these replies in turn, and fails the test on one request more.
func New(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	return Serve(t, func(n int, _ Request) Reply {
		if n > len(replies) {
			t.Errorf("chattest: request %d came, there are %d replies", n, len(replies))
			return Reply{Status: http.StatusTeapot}
		}
		return replies[n-1]
	})
}

// Serve starts a server that asks what to reply; the first request is number 1.
func Serve(t testing.TB, answer func(n int, r Request) Reply) *Server {
	t.Helper()
	s := &Server{t: t, answer: answer}
	h := httptest.NewServer(s)
	s.URL = h.URL
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return s
}

// Requests returns what the server got so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.got...)
}

// Refused returns why requests were refused that no provider would take.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refused...)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	req := Request{Path: r.URL.Path, Header: r.Header.Clone(), Raw: raw}
	if err == nil {
		err = json.Unmarshal(raw, &req.Body)
	}
	var kind wire
	switch {
	case err != nil:
		http.Error(w, "chattest: the body is no JSON object: "+err.Error(), http.StatusBadRequest)
		return
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		kind = openAI{}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/messages"):
		kind = anthropic{}
	default:
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.got = append(s.got, req)
	n := len(s.got)
	bad := kind.check(req)
	if bad != nil {
		s.refused = append(s.refused, bad.Error())
	}
	s.mu.Unlock()
	if bad != nil {
		fail(w, http.StatusBadRequest, kind.failure("invalid_request_error", "chattest: "+bad.Error(), ""))
		return
	}
	reply := s.answer(n, req)
	for k, v := range reply.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = v
	}
	switch {
	case reply.TooLong:
		fail(w, http.StatusBadRequest, kind.tooLong())
	case reply.Status != 0:
		fail(w, reply.Status, kind.failure(errorType(reply.Status), cmp.Or(reply.Message, http.StatusText(reply.Status)), ""))
	default:
		stream(w, r, kind.events(req, reply), reply)
	}
}

// wire is one provider's way to talk.
type wire interface {
	check(Request) error // what it would refuse
	events(Request, Reply) []event
	failure(kind, message, code string) any
	tooLong() any
}

// event is one server-sent event.
type event struct {
	name string
	data any
}

func fail(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone reads no error
}

func errorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

func stream(w http.ResponseWriter, r *http.Request, events []event, reply Reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	for i, e := range events {
		if reply.CutAfter > 0 && i == reply.CutAfter {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		if reply.Pause > 0 && i > 0 {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(reply.Pause):
			}
		}
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		if text, raw := e.data.(string); raw {
			fmt.Fprintf(w, "data: %s\n\n", text)
		} else if b, err := json.Marshal(e.data); err == nil {
			fmt.Fprintf(w, "data: %s\n\n", b)
		}
		if out.Flush() != nil {
			return
		}
	}
}

// pieces cuts a text into parts as a model's tokens do, at least one.
func pieces(s string) []string {
	var out []string
	runes := []rune(s)
	for len(runes) > 7 {
		out = append(out, string(runes[:7]))
		runes = runes[7:]
	}
	return append(out, string(runes))
}

// object and list read a decoded body without a panic.
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }
func text(v any) string           { s, _ := v.(string); return s }
