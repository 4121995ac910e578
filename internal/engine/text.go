package engine

import (
	"bytes"
	"encoding/json"
)

// jsonText is v as JSON without HTML escaping: a checked input or output inside keeps its canonical bytes, so that a person
// is shown, and a caller given, exactly what the digest and the ledger hold. v has plain fields only and cannot fail.
func jsonText(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
