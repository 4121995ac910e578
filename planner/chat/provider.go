package chat

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Provider says where models of one wire format are reached, and how the environment names it.
type Provider struct {
	Name string // in errors
	Env  string // what the variables begin with: Env_BASE_URL, Env_API_KEY, Env_MODEL
	Home string // the provider's own servers, which take no request without a key
	Like string // what a base URL looks like
}

// Complete fills in from the environment what is empty, and reports whether the model is at the provider's own servers. It
// fails where no model is named, no key is there for those servers, the key cannot be one, or the URL cannot be one; no error
// holds the URL or the key.
func (p Provider) Complete(baseURL, key, model *string) (home bool, err error) {
	*baseURL = cmp.Or(*baseURL, os.Getenv(p.Env+"_BASE_URL"), p.Home)
	*key = cmp.Or(*key, os.Getenv(p.Env+"_API_KEY"))
	*model = cmp.Or(*model, os.Getenv(p.Env+"_MODEL"))
	own, err := url.Parse(p.Home)
	if err != nil {
		return false, fmt.Errorf("%s: %w", p.Name, err)
	}
	u, err := url.Parse(*baseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return false, fmt.Errorf("%s: the base URL is none: want one such as %s in %s_BASE_URL or Options.BaseURL", p.Name, p.Like, p.Env)
	case u.User != nil:
		return false, fmt.Errorf("%s: the base URL holds a user or a password; put the key into %s_API_KEY or Options.Key", p.Name, p.Env)
	case *model == "":
		return false, fmt.Errorf("%s: no model is named; set %s_MODEL or Options.Model", p.Name, p.Env)
	}
	home = u.Hostname() == own.Hostname()
	switch {
	case *key == "" && home:
		return false, fmt.Errorf("%s: there is no key; set %s_API_KEY or Options.Key, or %s_BASE_URL for another server", p.Name, p.Env, p.Env)
	case strings.ContainsAny(*key, "\r\n"):
		return false, fmt.Errorf("%s: the key has a line break in it; look how it was read", p.Name)
	}
	return home, nil
}

// Stay is a client that follows no redirects: a key is for the server that it was given for.
func Stay() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
