package policy_test

import (
	"flag"
	"testing"
)

// checks is how often the unit tests try each property, unless -rapid.checks says otherwise.
const checks = "40"

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	m.Run()
}
