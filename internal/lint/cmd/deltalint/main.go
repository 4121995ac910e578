// Command deltalint runs this repository's own vet analyzers over the packages it is given:
//
//	go run ./internal/lint/cmd/deltalint ./...
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/seed-ab2cfece/delta-agents/internal/lint/zeroresult"
)

func main() { multichecker.Main(zeroresult.Analyzer) }
