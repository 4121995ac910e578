//go:build !race

package delta_test

const raced = false
