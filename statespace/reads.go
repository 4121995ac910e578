package statespace

// Reads says what of a call of the action the graph looks at, so that nobody has to prepare the rest: the input, for what
// the call rests on; input and output, for what an Ok of it establishes. Of an unknown action it says all.
func (g *Graph) Reads(name string) (required, input, output bool) {
	i, ok := g.index[name]
	if !ok {
		return true, true, true
	}
	for k := range g.needs[i] {
		required = required || len(g.needs[i][k].segs) > 0
	}
	for _, id := range g.setsOf[i] {
		for _, f := range g.sets[id].fields {
			input, output = input || !f.output, output || f.output
		}
	}
	return required, input, output
}
