package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// WebhookConfig configures a webhook.
type WebhookConfig struct {
	// URL is where notices are posted: https, or http to this machine.
	URL string
	// Secret signs them: "whsec_" and at least 24 bytes in base64, shared with the receiver. It is never logged.
	Secret string
	// Transport makes the requests; nil: the default one with TLS 1.2 or newer, certificates verified.
	Transport http.RoundTripper
	// Now is the clock that the signature's time comes from; nil: time.Now.
	Now func() time.Time
}

// Webhook posts each notice as JSON, signed by the Standard Webhooks scheme: an HMAC-SHA256 over id, time and body, in the
// headers webhook-id, webhook-timestamp and webhook-signature. A receiver verifies the signature, refuses old times, and
// drops an id it has seen. Redirects are not followed: who holds the address of a receiver does not choose another one.
//
// Every answer but 2xx is a failure. It is repeated where that may help: after 408, 425, 429 and 5xx, as late as Retry-After
// says.
type Webhook struct {
	url    string
	host   string
	sign   *webhooks.Webhook
	client *http.Client
	now    func() time.Time
}

// minSecret is the least bytes of a secret.
const minSecret = 24

// NewWebhook returns a webhook. Errors do not repeat the secret, nor anything of the URL but its host.
func NewWebhook(cfg WebhookConfig) (*Webhook, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("webhook: URL is not an absolute URL")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())) {
		return nil, fmt.Errorf("webhook: URL of %s is not https; http is for this machine alone", u.Host)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(cfg.Secret, "whsec_"))
	if err != nil || len(key) < minSecret {
		return nil, fmt.Errorf(`webhook: Secret is not "whsec_" and at least %d bytes in base64`, minSecret)
	}
	sign, err := webhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, errors.New("webhook: Secret cannot be used")
	}
	if cfg.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		cfg.Transport = t
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	client := &http.Client{Transport: cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Webhook{url: cfg.URL, host: u.Host, sign: sign, client: client, now: cfg.Now}, nil
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// String names the receiver's host alone: a path may be a secret.
func (w *Webhook) String() string { return "webhook to " + w.host }

// GoString is String: no format shows the secret.
func (w *Webhook) GoString() string { return w.String() }

// Notify implements [Notifier].
func (w *Webhook) Notify(ctx context.Context, n Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return backoff.Permanent(fmt.Errorf("%s: %w", w, err))
	}
	return w.Post(ctx, n.ID, body)
}

// Post posts any JSON body, signed, under an id that is the same for the same message.
func (w *Webhook) Post(ctx context.Context, id string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("%s: no request can be made", w))
	}
	at := w.now()
	signature, err := w.sign.Sign(id, at, body)
	if err != nil {
		return backoff.Permanent(fmt.Errorf("%s: cannot be signed", w))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "delta-agents")
	req.Header.Set(webhooks.HeaderWebhookID, id)
	req.Header.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	req.Header.Set(webhooks.HeaderWebhookSignature, signature)
	resp, err := w.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // its text repeats the whole URL
			err = u.Err
		}
		return fmt.Errorf("%s: %w", w, err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	return w.judge(resp)
}

// judge makes an error of an answer that is not 2xx.
func (w *Webhook) judge(resp *http.Response) error {
	code := resp.StatusCode
	if code/100 == 2 {
		return nil
	}
	err := fmt.Errorf("%s: answered %d %s", w, code, http.StatusText(code))
	switch {
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		if s, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil && s > 0 {
			return backoff.RetryAfter(min(s, 60))
		}
	case code == http.StatusRequestTimeout || code == http.StatusTooEarly || code/100 == 5:
	default:
		return backoff.Permanent(err)
	}
	return err
}

// CloseIdleConnections closes connections that no request uses.
func (w *Webhook) CloseIdleConnections() { w.client.CloseIdleConnections() }
