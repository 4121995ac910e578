// Package subject enrols the engine of this module, package delta, in the conformance cases, over any store.
package subject
