package sandbox

import "golang.org/x/sys/unix"

// modedBefore are the calls of this machine that those which take a folder replaced.
var modedBefore = []modal{
	{call: unix.SYS_CHMOD, mode: 1},
	{call: unix.SYS_MKNOD, mode: 1},
	{call: unix.SYS_MKDIR, mode: 1},
	{call: unix.SYS_CREAT, mode: 1},
	{call: unix.SYS_OPEN, mode: 2, flags: 1},
}
