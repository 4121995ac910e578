package statespace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

var errNull = errors.New("it is null")

// Cell is the content of a bulk cell: value → store time of the Ok that established it, µs.
type Cell map[string]int64

// Add returns the cell with the values established at store time at. Above MaxBulk values the oldest are left out: what
// is forgotten has to be established again.
func (c Cell) Add(values []string, at int64) Cell {
	out := make(Cell, len(c)+len(values))
	maps.Copy(out, c)
	for _, v := range values {
		out[v] = at
	}
	if len(out) <= MaxBulk {
		return out
	}
	order := slices.SortedFunc(maps.Keys(out), func(a, b string) int {
		return cmp.Or(cmp.Compare(out[a], out[b]), cmp.Compare(a, b))
	})
	for _, v := range order[:len(out)-MaxBulk] {
		delete(out, v)
	}
	return out
}

// Without returns the cell without one value.
func (c Cell) Without(value string) Cell {
	out := maps.Clone(c)
	delete(out, value)
	return out
}

// String returns the cell as it is stored: a JSON object sorted by value.
func (c Cell) String() string {
	if c == nil {
		return "{}"
	}
	text, _ := json.Marshal(map[string]int64(c)) // strings and integers always marshal
	return string(text)
}

// ParseCell reads what String wrote. The empty text is an empty cell.
func ParseCell(text string) (Cell, error) {
	c := Cell{}
	if text == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil || c == nil {
		return nil, fmt.Errorf("bulk cell is not an object of times: %w", cmp.Or(err, errNull))
	}
	return c, nil
}
