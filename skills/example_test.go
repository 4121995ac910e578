package skills_test

import (
	"fmt"
	"testing/fstest"

	"github.com/seed-ab2cfece/delta-agents/skills"
)

// A library lists what there is by the front matter alone, and reads a skill when it is used.
func Example() {
	library := skills.New(fstest.MapFS{
		"refunds/SKILL.md":             {Data: []byte("---\nname: refunds\ndescription: How refunds are decided here.\n---\nRefund what is under the [limit](references/limits.md).\n")},
		"refunds/references/limits.md": {Data: []byte("100 EUR\n")},
	})
	list, err := library.List()
	fmt.Println(list, err)

	skill, err := library.Read("refunds")
	fmt.Println(skill.Body, err)
	limits, err := library.ReadFile("refunds", "references/limits.md")
	fmt.Printf("%s%v\n", limits, err)

	_, err = library.Read("returns")
	fmt.Println(err)
	// Output:
	// [refunds: How refunds are decided here.] <nil>
	// Refund what is under the [limit](references/limits.md). <nil>
	// 100 EUR
	// <nil>
	// skill "returns": there is no such skill: none of ["file system 1/returns/SKILL.md"] exists; create one with a front matter of name and description, or name another skill
}
