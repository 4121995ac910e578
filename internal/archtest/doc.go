// Package archtest holds the shape of the repository by test: who may import whom, which third-party module stands behind
// which folder, that the decision core reads no clock, randomness, environment, context or logger, that every package
// introduces itself exactly once and every exported name is documented, that files stay readable, and that nothing
// refers to places a user's checkout does not have.
//
// The rules are tables in layers.go and rules_*.go. Each rule is a function of a file tree, so that the tests can feed
// it a small tree that breaks it: a rule that cannot fail is not a rule. [Check] applies them all.
package archtest
