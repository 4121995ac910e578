package delta_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// update rewrites the documents that tests hold: go test ./delta -update.
var update = flag.Bool("update", false, "rewrite generated documents")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
