// Package whatif tries rules on decisions that were recorded, and lists those that would have been others.
package whatif
