package engine

import (
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// inputTree parses the input of a recorded intent again.
func inputTree(begun ledger.Event) (any, error) {
	doc, f := schema.Canonical(json.RawMessage(begun.Input), 0)
	if f != nil {
		return nil, fmt.Errorf("recorded input of intent %s: %w", begun.Intent, f)
	}
	return doc.Tree(), nil
}
