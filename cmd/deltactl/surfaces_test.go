package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/planner/chat"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// mark begins every secret that is planted; what follows it says where. shown begins what approvers are to see, and nobody else.
const mark, shown = "MARKED-", "SHOWN-to"

// leaks are the ways in which a mark can be read.
var leaks = []string{mark, "7741184117", strings.ToLower(mark), hex.EncodeToString([]byte(mark)), base64.StdEncoding.EncodeToString([]byte(mark))[:9]}

// leak is where a text lets a mark be read, "" where it does not.
func leak(text string) string {
	for _, l := range leaks {
		if i := strings.Index(text, l); i >= 0 {
			return text[max(0, i-300):min(len(text), i+100)]
		}
	}
	return ""
}

type inner struct {
	Pin  string `json:"pin" delta:"secret"`
	Note string `json:"note,omitempty"`
}

// secretive has a secret in each place that a document has.
type secretive struct {
	ID     string            `json:"id"`
	Top    string            `json:"top" delta:"secret"`
	Within inner             `json:"within"`
	List   []inner           `json:"list"`
	Plain  []string          `json:"plain" delta:"secret"`
	Map    map[string]string `json:"map" delta:"secret"`
	Under  map[string]inner  `json:"under"`
	Count  int64             `json:"count" delta:"secret"`
}

const marked = `{"id":"o1","top":"MARKED-top \"quoted\"","within":{"pin":"MARKED-within"},"list":[{"pin":"MARKED-list0"},{"pin":"MARKED-list1","note":"n"}],` +
	`"plain":["MARKED-plain"],"map":{"MARKED-name":"MARKED-value"},"under":{"k":{"pin":"MARKED-under"}},"count":7741184117}`

func (s secretive) err(what string) error {
	return fmt.Errorf("%s: no card %s, %q, %v, %v, %v", what, s.Top, s.Within.Pin, s.List, s.Plain, s.Map)
}

// plot is a world in which secrets are planted, and the places out of which they could come.
type plot struct {
	*testing.T
	store   *redisstore.Store
	server  *redistest.Server
	engine  *delta.Engine
	outer   *workflow.Definition
	ring    string
	people  string
	heard   map[string]*hearing // by surface
	spans   *tracetest.SpanRecorder
	meters  *sdkmetric.ManualReader
	tasks   map[string]*delta.Task
	ids     map[string]string
	got     []secretive
	closing []func()
	mu      sync.Mutex // of heard and got
}

// hearing keeps what is told, by anybody and at any time.
type hearing struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *hearing) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *hearing) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// told writes what there is to read of values, in each way in which a program prints them.
func (h *hearing) told(what ...any) {
	for _, v := range what {
		text, _ := json.Marshal(v)
		fmt.Fprintf(h, "%v\n%+v\n%#v\n%s\n", v, v, v, text)
	}
}

func (p *plot) hear(surface string) *hearing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard[surface] == nil {
		p.heard[surface] = &hearing{}
	}
	return p.heard[surface]
}

// overhear is a model that keeps its prompts, asks for one call, and is done.
type overhear struct {
	h     *hearing
	asked int
}

func (m *overhear) Ask(_ context.Context, in chat.Prompt) (chat.Reply, error) {
	m.h.told(in)
	m.asked++
	call := func(name string) chat.Reply {
		return chat.Reply{Calls: []chat.ToolCall{{ID: fmt.Sprint("c", m.asked), Name: name, Arguments: strings.NewReplacer(mark, "its own ", "7741184117", "7").Replace(marked)}}}
	}
	switch m.asked {
	case 1:
		return call("charge"), nil
	case 2:
		return call("fail"), nil
	}
	return chat.Reply{Text: "done"}, nil
}

func newPlot(t *testing.T) *plot {
	p := &plot{T: t, heard: map[string]*hearing{}, tasks: map[string]*delta.Task{}, ids: map[string]string{}}
	p.server = redistest.Start(t)
	dir := t.TempDir()
	p.ring, p.people = filepath.Join(dir, "ring"), filepath.Join(dir, "operators")
	require.NoError(t, os.WriteFile(p.people, []byte(p.me()+"\n"), 0o600))
	var out bytes.Buffer
	require.Zero(t, p.ctl(&out, "keys", "new", p.ring, "--id", "march"), out.String())
	p.open()
	t.Cleanup(p.close)
	return p
}

func (p *plot) me() string {
	name, err := osUser(p.Context(), nil)
	require.NoError(p, err)
	return name.Name
}

// ctl runs the program, and returns its exit code.
func (p *plot) ctl(out *bytes.Buffer, args ...string) int {
	ctx, stop := context.WithTimeout(p.Context(), 30*time.Second)
	defer stop()
	root := newRoot()
	root.SetIn(strings.NewReader(""))
	root.SetOut(out)
	root.SetErr(out)
	return execute(ctx, root, args, out)
}

// surface is a place where a secret could be read, and all the text there.
type surface struct {
	name string
	text func(p *plot) string
}

func heard(name string) surface {
	return surface{name, func(p *plot) string { return p.hear(name).String() }}
}

// surfaces is where secrets are looked for, besides what the verbs of the program print. It is read while the engine is
// open; what is heard is read again when it has closed.
var surfaces = []surface{
	heard("observer"), heard("log"), heard("telemetry log"), heard("audit"), heard("webhook"), heard("notice"), heard("prompt"), heard("proposer"),
	heard("preview"), heard("failure"), heard("workflow state"),
	{"ledger", func(p *plot) string {
		var h hearing
		for _, t := range p.tasks {
			events, err := t.Events(p.Context())
			require.NoError(p, err)
			h.told(events)
			records, _, err := t.Ledger(p.Context())
			require.NoError(p, err)
			for _, r := range records {
				fmt.Fprintf(&h, "%s\n", r.Val)
			}
		}
		return h.String()
	}},
	{"store", func(p *plot) string {
		var h hearing
		c := p.server.Client(p)
		for all := c.Scan(p.Context(), 0, "*", 1000).Iterator(); all.Next(p.Context()); {
			key := all.Val()
			read := map[string][]any{
				"string": {"GET", key}, "hash": {"HGETALL", key}, "list": {"LRANGE", key, 0, -1}, "set": {"SMEMBERS", key},
				"zset": {"ZRANGE", key, 0, -1, "WITHSCORES"}, "stream": {"XRANGE", key, "-", "+"},
			}[c.Type(p.Context(), key).Val()]
			require.NotNil(p, read, "%s is of a type that is not looked into", key)
			v, err := c.Do(p.Context(), read...).Result()
			require.NoError(p, err)
			fmt.Fprintf(&h, "%s %v\n", key, v)
		}
		scripts, err := c.Do(p.Context(), "FUNCTION", "LIST", "WITHCODE").Result()
		require.NoError(p, err)
		fmt.Fprintln(&h, scripts)
		return h.String()
	}},
	{"offers and grounds", func(p *plot) string {
		var h hearing
		for _, t := range p.tasks {
			offer, err := t.Offer(p.Context())
			require.NoError(p, err)
			h.told(offer)
			for _, d := range t.Agent().Actions() {
				st, err := t.Explain(p.Context(), d)
				require.NoError(p, err)
				h.told(st)
				path, _ := t.Path(p.Context(), d)
				h.told(path)
			}
		}
		return h.String()
	}},
	{"desk", func(p *plot) string {
		var h hearing
		asked, err := p.engine.Approvals(p.Context(), 99)
		require.NoError(p, err)
		require.NotEmpty(p, asked)
		for _, a := range asked {
			one, err := p.engine.Approval(p.Context(), a.ID)
			require.NoError(p, err)
			h.told(a, one)
		}
		left, err := p.engine.Unresolved(p.Context(), 99)
		require.NoError(p, err)
		require.NotEmpty(p, left)
		raised, err := p.engine.Escalations(p.Context(), 99)
		require.NoError(p, err)
		h.told(left, raised)
		return h.String()
	}},
	{"spans", func(p *plot) string {
		var h hearing
		ended := p.spans.Ended()
		require.NotEmpty(p, ended)
		h.told(tracetest.SpanStubsFromReadOnlySpans(ended))
		return h.String()
	}},
	{"metrics", func(p *plot) string {
		var h hearing
		var m metricdata.ResourceMetrics
		require.NoError(p, p.meters.Collect(p.Context(), &m))
		require.NotEmpty(p, m.ScopeMetrics)
		h.told(m)
		return h.String()
	}},
}

// approvers are the surfaces that show whoever decides what a task about somebody wants to do.
var approvers = []string{"desk", "approvals list", "approvals show", "approvals show --all", "watch"} // which need the ring for it

// TestI14_SecretsAreOnNoSurface plants secrets wherever a field that is tagged can be, and words in tasks about somebody, has
// everything happen to them, and looks for them wherever anything can be read.
func TestI14_SecretsAreOnNoSurface(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") == "" {
		t.Skip("make deps installs redis-server")
	}
	p := newPlot(t)
	p.play()
	require.NotEmpty(t, p.got)
	assert.True(t, slices.ContainsFunc(p.got, func(in secretive) bool { return in.Top == `MARKED-top "quoted"` }), "the function has the secret")
	look := func(t *testing.T, name, text string) {
		assert.NotEmpty(t, text, name)
		assert.Empty(t, leak(text), "a secret can be read: %s", name)
		if !slices.Contains(approvers, strings.TrimSuffix(name, " "+p.ids["about"])) {
			assert.NotContains(t, text, shown, "what approvers alone are shown: %s", name)
		}
	}
	for _, s := range surfaces {
		t.Run(s.name, func(t *testing.T) { look(t, s.name, s.text(p)) })
	}
	t.Run("verbs", func(t *testing.T) { p.verbs(t, look) })
	p.close()
	for name, h := range p.heard {
		t.Run(name+" in the end", func(t *testing.T) { look(t, name, h.String()) })
	}
}
