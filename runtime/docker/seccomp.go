package docker

import (
	"slices"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// profile returns Docker's default seccomp profile of today, which forbids io_uring, unlike that of
// engines before Docker 25: a program can keep deleted files in one, where no measurement of disk
// usage finds them. It also forbids FS_IOC_FSSETXATTR: with it a program gives its files to the
// project of another volume, whose quota they then use up.
func profile() *seccomp.Seccomp {
	p := seccomp.DefaultProfile()
	for _, rule := range p.Syscalls {
		rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return name == "ioctl" })
	}
	for bit := range 16 {
		p.Syscalls = append(p.Syscalls, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"ioctl"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 1, Op: specs.OpMaskedEqual, Value: 1 << bit, ValueTwo: ^setProject & (1 << bit)}}}})
	}
	return p
}

// setProject is the type and the number of FS_IOC_FSSETXATTR in a request of ioctl: its lower 16
// bits. A filter can only name what it allows: every request that differs in one of these bits. The
// kernel ignores the upper half of a request, so that whole requests cannot be compared.
const setProject uint64 = 'X'<<8 | 32
