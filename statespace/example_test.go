package statespace_test

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

func orders() *statespace.Graph {
	byOrder := []statespace.Bind{{Mine: "orderId", Theirs: "orderId"}}
	g, err := statespace.Compile([]statespace.Node{
		{Name: "look-up", Cost: action.Cost{Tokens: 50}},
		{Name: "confirm-order", Cost: action.Cost{Tokens: 500}, Needs: []statespace.Need{{Action: "look-up", Bind: byOrder}}},
		{Name: "charge", Cost: action.Cost{Tokens: 100}, Needs: []statespace.Need{{Action: "confirm-order", Bind: byOrder, Consumed: true}}},
	})
	if err != nil {
		panic(err)
	}
	return g
}

func Example() {
	g := orders()
	task := g.NewSet()
	fmt.Println(task.Names())

	facts, _ := g.Facts("look-up", map[string]any{"orderId": "ORD-1"}, nil)
	fmt.Println(facts.Keys)
	for _, key := range facts.Keys {
		task.Put(key, 0)
	}
	fmt.Println(task.Names())

	_, unmet, _ := task.Check("confirm-order", map[string]any{"orderId": "ORD-2"}, 0)
	fmt.Println(unmet)
	// Output:
	// [look-up]
	// [look-up@orderId="ORD-1"]
	// [look-up confirm-order]
	// [needs look-up on orderId="ORD-2"]
}

func ExampleGraph_Explain() {
	g := orders()
	unmet, _ := g.Explain("charge", g.NewSet(), 0)
	fmt.Println(unmet)
	// Output: [needs confirm-order on orderId]
}

func ExampleGraph_Path() {
	g := orders()
	path, _ := g.Path("charge", g.NewSet(), 0, nil)
	fmt.Println(path)
	fmt.Println(path.Cost.Tokens, "tokens before the first charge")
	// Output:
	// look-up → confirm-order → charge
	// 550 tokens before the first charge
}

func ExampleParseKey() {
	f, _ := statespace.ParseKey(`list@dir="/srv",output:entries.*.path="a.txt"`)
	for _, v := range f.Values {
		fmt.Println(f.Action, v.Path, v.Output, v.JSON)
	}
	// Output:
	// list dir false "/srv"
	// list entries.*.path true "a.txt"
}
