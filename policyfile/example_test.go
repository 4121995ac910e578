package policyfile_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/policyfile"
)

// Rules from a file, replaced while they are in use. In a program, Live.Watch does it whenever the file changes, and
// delta.Config.Policy is the Live.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	save := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	ask := func(p policy.Policy) bool {
		return policy.Evaluate(p, policy.Request{Agent: "mia", Action: "refund", Declared: 2, Effective: 2, Trust: 0.5}).Permit
	}
	save("grants:\n  - {agent: mia, actions: [refund]}\n")
	rules, err := policyfile.Open(path)
	if err != nil {
		panic(err)
	}
	fmt.Println(ask(rules))
	save("grants:\n  - {agent: mia, actons: [refund]}\n")
	fmt.Println(rules.Reload().Err != nil, ask(rules))
	save("grants: []\n")
	fmt.Println(rules.Reload().Err != nil, ask(rules))
	// Output:
	// true
	// true true
	// false false
}
