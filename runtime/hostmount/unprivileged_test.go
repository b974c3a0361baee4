package hostmount_test

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// withoutSysAdmin calls f on its own thread without CAP_SYS_ADMIN, and then check
// with the error of f.
func withoutSysAdmin(f func() error, check func(error)) error {
	dropped, result := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		if err := dropSysAdmin(); err != nil {
			dropped <- err
			return
		}
		dropped <- nil
		result <- f()
	}()
	if err := <-dropped; err != nil {
		return err
	}
	check(<-result)
	return nil
}

func dropSysAdmin() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_SYS_ADMIN
	return unix.Capset(&header, &data[0])
}
