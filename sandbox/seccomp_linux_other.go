//go:build linux && !amd64

package sandbox

// modedBefore are none: newer machines have only the calls that take a folder.
var modedBefore []modal
