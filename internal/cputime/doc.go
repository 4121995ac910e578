// Package cputime measures what work costs in time of the processor: tests that demand that something ends soon measure
// with it, so that they judge the work and not how busy the machine is.
package cputime
