// Package held says where the state of an example is held: in the process, or in the store that --store or DELTA_STORE names.
package held

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"time"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// Place is where state is held. A nil Place is the process.
type Place struct {
	store *redisstore.Store
	run   string // tells this run from others in the same store
}

// Open opens the store that the URL, or else DELTA_STORE, names; nil where neither names one. DELTA_PREFIX,
// DELTA_STORE_USER and DELTA_STORE_PASSWORD count too, as for deltactl.
func Open(ctx context.Context, url string) (*Place, error) {
	url = cmp.Or(url, os.Getenv("DELTA_STORE"))
	if url == "" {
		return nil, nil
	}
	s, err := redisstore.Open(ctx, redisstore.Config{
		URL: url, Prefix: os.Getenv("DELTA_PREFIX"), User: os.Getenv("DELTA_STORE_USER"), Password: os.Getenv("DELTA_STORE_PASSWORD"),
	})
	if err != nil {
		return nil, err
	}
	return &Place{s, "-" + strconv.FormatInt(time.Now().UnixMilli(), 36)}, nil
}

// Store is for delta.Config; nil is the process.
func (p *Place) Store() memory.Store {
	if p == nil {
		return nil
	}
	return p.store
}

// ID makes the id of a task: a store keeps what earlier runs did, and an id is taken until its task is pruned.
func (p *Place) ID(name string) string {
	if p == nil {
		return name
	}
	return name + p.run
}

// Close closes the store.
func (p *Place) Close() error {
	if p == nil {
		return nil
	}
	return p.store.Close()
}
