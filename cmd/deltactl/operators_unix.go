//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// trusted reports why a file could have been written by somebody who may not say who operates.
func trusted(info fs.FileInfo) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errors.New("the system does not say to whom it belongs")
	case s.Uid != 0:
		return fmt.Errorf("it belongs to user %d, not to root", s.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others than root can write it (mode %04o): chmod go-w", info.Mode().Perm())
	}
	return nil
}
