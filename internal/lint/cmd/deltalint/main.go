// Command deltalint holds this repository's own vet analyzers, for go vet to run:
//
//	go build -o bin/deltalint ./internal/lint/cmd/deltalint
//	go vet -vettool=bin/deltalint ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/seed-ab2cfece/delta-agents/internal/lint/zeroresult"
)

func main() { unitchecker.Main(zeroresult.Analyzer) }
