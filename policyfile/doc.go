// Package policyfile reads rules for package policy from files and keeps them up to date while an engine runs.
//
// [Load] reads a file once. [Open] returns a [Live] policy for delta.Config.Policy: [Live.Reload] reads its files again and
// replaces the rules all at once, [Live.Watch] does so whenever they change. Rules that do not compile change nothing: the
// earlier ones stay in force, and the error says what is wrong.
//
// A file is JSON or YAML (.json, .yaml, .yml), see [policy.ParseSources], or Cedar (.cedar). What a file includes is
// relative to it.
package policyfile
