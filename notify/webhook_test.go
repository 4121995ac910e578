package notify_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/notify"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="

// receiver is what a receiver of webhooks does: it verifies, answers as scripted, and keeps what it took.
type receiver struct {
	*testing.T
	*httptest.Server
	mu      sync.Mutex
	answers []int // by turns, then 204
	header  http.Header
	took    []notify.Notice
	ids     []string
}

func newReceiver(t *testing.T, answers ...int) *receiver {
	r := &receiver{T: t, answers: answers, header: http.Header{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(q.Body)
	assert.NoError(r, err)
	verifier, err := webhooks.NewWebhook(secret)
	assert.NoError(r, err)
	assert.NoError(r, verifier.Verify(body, q.Header), "signed")
	r.ids = append(r.ids, q.Header.Get("webhook-id"))
	if len(r.answers) > 0 {
		code := r.answers[0]
		r.answers = r.answers[1:]
		for k, v := range r.header {
			w.Header()[k] = v
		}
		w.WriteHeader(code)
		return
	}
	var n notify.Notice
	assert.NoError(r, json.Unmarshal(body, &n))
	r.took = append(r.took, n)
	w.WriteHeader(http.StatusNoContent)
}

// received returns what was taken so far.
func (r *receiver) received() []notify.Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]notify.Notice(nil), r.took...)
}

func hook(t *testing.T, url string) *notify.Webhook {
	w, err := notify.NewWebhook(notify.WebhookConfig{URL: url, Secret: secret})
	require.NoError(t, err)
	t.Cleanup(w.CloseIdleConnections)
	return w
}

func TestWebhook_SignsAndJudges(t *testing.T) {
	for code, fails := range map[int]bool{200: false, 204: false, 301: true, 307: true, 400: true, 404: true, 429: true, 500: true} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			r := newReceiver(t, code)
			r.header.Set("Location", r.URL+"/elsewhere")
			err := hook(t, r.URL).Notify(t.Context(), notify.Notice{ID: "msg_1", Kind: notify.ApprovalRequested})
			assert.Equal(t, fails, err != nil, "%v", err)
			assert.Equal(t, []string{"msg_1"}, r.ids, "one request: redirects are not followed")
		})
	}
}

func TestNewWebhook_RefusesWhatIsNotSafe(t *testing.T) {
	cases := []struct{ url, secret, says, why string }{
		{"http://example.com/hook", secret, "not https", "anybody could read it"},
		{"hook", secret, "absolute", "no host"},
		{"https://example.com/hook", "hunter2hunter2hunter2", "base64", "not a key"},
		{"https://example.com/hook", "whsec_c2hvcnQ=", "24 bytes", "guessable"},
		{"https://example.com/hook", "", "24 bytes", "nothing to sign with"},
	}
	for _, c := range cases {
		_, err := notify.NewWebhook(notify.WebhookConfig{URL: c.url, Secret: c.secret})
		require.ErrorContains(t, err, c.says, c.why)
		if c.secret != "" {
			assert.NotContains(t, err.Error(), c.secret)
		}
	}
}

// Neither the secret nor the path, which may be one, is in anything that can be printed.
func TestWebhook_KeepsItsSecrets(t *testing.T) {
	w := hook(t, "http://127.0.0.1:1/path-that-is-secret?token=x")
	err := w.Notify(t.Context(), notify.Notice{ID: "msg_1"})
	require.Error(t, err)
	for _, text := range []string{err.Error(), fmt.Sprint(w), fmt.Sprintf("%v %+v %#v %s", w, w, w, w)} {
		assert.NotContains(t, text, "path-that-is-secret")
		assert.NotContains(t, text, strings.TrimPrefix(secret, "whsec_"))
		assert.Contains(t, text, "127.0.0.1:1")
	}
}

// A receiver whose certificate nobody vouches for is not talked to.
func TestWebhook_VerifiesTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	assert.ErrorContains(t, hook(t, s.URL).Notify(t.Context(), notify.Notice{ID: "msg_1"}), "certificate")
}
