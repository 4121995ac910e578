//go:build heavy

package policy_test

import (
	"flag"
	"testing"
)

// The properties of random bundles, tried much more often.
func TestRandomBundlesOften(t *testing.T) {
	before := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = flag.Set("rapid.checks", before) }()
	t.Run("index", TestIndexEqualsLinear)
	t.Run("offer", TestI03_WhatIsPermittedForSomeInputIsOffered)
}
