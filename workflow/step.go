package workflow

// MaxInstance is how long the id of an instance may be, in bytes, so that what is made of it stays a name.
const MaxInstance = 96

// Start is the first turn of an instance. It does not look at whether the input satisfies [Spec.Input]: the driver has, at
// the strict edge.
func (d *Definition) Start(b Begin) (Turn, error) {
	return Turn{}, nil
}

// Step takes one event. The error says that the state is not one of this definition, and nothing else: whatever an event
// says, the instance goes on, parks or ends.
func (d *Definition) Step(s State, e Event) (Turn, error) {
	return Turn{}, nil
}
