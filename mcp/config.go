package mcp

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// Config says which server is used and how.
type Config struct {
	// Name is what the server is called here: its tool "read" becomes the action "NAME.read". A name as action.CheckName
	// wants it, at most 64 bytes.
	Name string
	// Server is where it is: Stdio, HTTP or Using.
	Server Server
	// Only names the tools to import, as the server calls them; empty: all.
	Only []string
	// Classes say what is known of tools, as the server calls them, by somebody who knows better than the server.
	Classes map[string]Class
	// Distrust ignores what the server says of its tools' effects: all are irreversible and of risk 3, but for Classes.
	Distrust bool
	// Shape changes what is declared of a tool, such as that it asks for approval; nil: nothing.
	Shape func(Info, delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output]

	// MaxTools is how many tools a server may list; of one that lists more none is imported. Default 256.
	MaxTools int
	// MaxOutput is the most bytes that a result may have, as JSON. Default and most 1 MiB.
	MaxOutput int
	// MaxFrame is the most bytes of one message of the server; one that sends more loses its connection. Default 8 MiB.
	MaxFrame int
	// ConnectTime bounds how long it may take to reach the server and to list its tools. Default 10 s.
	ConnectTime time.Duration
	// Pause is how long a server that could not be reached, or went away, is left alone; it doubles each time, up to
	// LongPause. Defaults 100 ms and 30 s.
	Pause, LongPause time.Duration
	// Log receives what tools were not imported, what changed, and what the server writes beside the protocol. Default:
	// slog.Default.
	Log *slog.Logger
}

// Class is the risk and the effect of a tool.
type Class struct {
	Risk   int // 1 to 5
	Effect action.Effect
}

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	if c.MaxTools == 0 {
		c.MaxTools = 256
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = schema.DefaultLimit
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = 8 << 20
	}
	if c.ConnectTime == 0 {
		c.ConnectTime = 10 * time.Second
	}
	if c.Pause == 0 {
		c.Pause = 100 * time.Millisecond
	}
	if c.LongPause == 0 {
		c.LongPause = max(30*time.Second, c.Pause)
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// maxServer is the longest name of a server, which leaves room for those of its tools.
const maxServer = 64

func (c Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("mcp: "+format, args...)) }
	if err := action.CheckName(c.Name); err != nil {
		fault("Name: %w", err)
	} else if len(c.Name) > maxServer {
		fault("Name has %d bytes, want at most %d", len(c.Name), maxServer)
	}
	if c.Server == nil {
		fault("Server is missing: where is it? See Stdio and HTTP")
	} else if err := c.Server.check(); err != nil {
		fault("Server: %w", err)
	}
	if c.MaxTools < 1 {
		fault("MaxTools is %d, want at least 1", c.MaxTools)
	}
	if c.MaxOutput < 1 || c.MaxOutput > schema.DefaultLimit {
		fault("MaxOutput is %d, want 1 to %d", c.MaxOutput, schema.DefaultLimit)
	}
	if c.MaxFrame < c.MaxOutput {
		fault("MaxFrame is %d, less than MaxOutput", c.MaxFrame)
	}
	if c.ConnectTime <= 0 || c.Pause <= 0 || c.LongPause < c.Pause {
		fault("ConnectTime is %v, Pause %v, LongPause %v: want more than 0, in that order of pauses", c.ConnectTime, c.Pause, c.LongPause)
	}
	for name, k := range c.Classes {
		if k.Risk < 1 || k.Risk > 5 || !k.Effect.Valid() {
			fault("Classes[%q]: risk is %d, effect %d; want 1 to 5 and a class", action.CutTo(name, 64), k.Risk, k.Effect)
		}
	}
	return errors.Join(faults...)
}
