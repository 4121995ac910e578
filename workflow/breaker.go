package workflow

// BreakerState counts the failures of the children of one definition.
type BreakerState struct {
	Workflow string  `json:"workflow"`
	Failures []int64 `json:"failures,omitempty"` // when, µs since 1970, those within the window
	Until    int64   `json:"until,omitempty"`    // tripped until then
}
