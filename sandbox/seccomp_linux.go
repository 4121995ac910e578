package sandbox

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sys/unix"
)

// forbidden are calls to the kernel that no tool needs: they reach into other processes, into keyrings, which have no
// namespace, or into parts of the kernel where much has gone wrong. They fail with EPERM.
var forbidden = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
}

// moded are the calls that give a file its mode. One that runs under its owner's identity, or its group's, would be left to
// others of the machine by a tool that may write: such modes are refused with EPERM.
var moded = append([]modal{
	{call: unix.SYS_FCHMOD, mode: 1},
	{call: unix.SYS_FCHMODAT, mode: 2},
	{call: unix.SYS_FCHMODAT2, mode: 2},
	{call: unix.SYS_MKNODAT, mode: 2},
	{call: unix.SYS_MKDIRAT, mode: 2},
	{call: unix.SYS_OPENAT, mode: 3, flags: 2},
}, modedBefore...)

// modal is a call that takes a mode.
type modal struct {
	call  uint32
	mode  uint32 // which argument it is, from 0 on
	flags uint32 // which argument says whether a file is made; 0: one always is
}

const (
	privileged = unix.S_ISUID | unix.S_ISGID
	makesFile  = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY // without them the mode is ignored, and may be anything
)

// absent are calls of which programs know how to do without. They fail with ENOSYS: a filter does not see the mode that the
// first takes in memory.
var absent = []uint32{unix.SYS_OPENAT2}

// Offsets in the kernel's struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16 // its low half: both machines below are little-endian
	argSize   = 8
)

// filter is the program by which the kernel refuses the calls above, and that of a tool which would no longer die with its
// parent; nil where this machine's numbers are not known here.
func filter() []byte {
	arch, x32 := uint32(0), false
	switch runtime.GOARCH {
	case "amd64":
		arch, x32 = unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		arch = unix.AUDIT_ARCH_AARCH64
	default:
		return nil
	}
	const (
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		anyOf   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret     = unix.BPF_RET | unix.BPF_K
		refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	var prog []unix.SockFilter
	add := func(code uint16, jt, jf uint8, k uint32) {
		prog = append(prog, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
	}
	add(load, 0, 0, offArch)
	add(equal, 1, 0, arch) // another machine's calls have other numbers
	add(ret, 0, 0, unix.SECCOMP_RET_KILL_PROCESS)
	add(load, 0, 0, offNumber)
	if x32 {
		add(atLeast, 0, 1, 0x40000000)
		add(ret, 0, 0, refuse)
	}
	for _, n := range forbidden {
		add(equal, 0, 1, n)
		add(ret, 0, 0, refuse)
	}
	for _, n := range absent {
		add(equal, 0, 1, n)
		add(ret, 0, 0, missing)
	}
	for _, m := range moded { // each ends by itself: what is loaded is the number no more
		if m.flags == 0 {
			add(equal, 0, 4, m.call)
		} else {
			add(equal, 0, 6, m.call)
			add(load, 0, 0, offArg0+argSize*m.flags)
			add(anyOf, 0, 3, makesFile)
		}
		add(load, 0, 0, offArg0+argSize*m.mode)
		add(anyOf, 0, 1, privileged)
		add(ret, 0, 0, refuse)
		add(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
	}
	add(equal, 0, 3, unix.SYS_PRCTL)
	add(load, 0, 0, offArg0)
	add(equal, 0, 1, unix.PR_SET_PDEATHSIG)
	add(ret, 0, 0, refuse)
	add(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
	out := make([]byte, 0, 8*len(prog))
	for _, i := range prog {
		out = binary.LittleEndian.AppendUint16(out, i.Code)
		out = append(out, i.Jt, i.Jf)
		out = binary.LittleEndian.AppendUint32(out, i.K)
	}
	return out
}
