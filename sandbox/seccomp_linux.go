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

// Offsets in the kernel's struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16 // its low half: both machines below are little-endian
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
		ret     = unix.BPF_RET | unix.BPF_K
		refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
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
