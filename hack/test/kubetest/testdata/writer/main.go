// Command writer is the program of containers whose machines are lost. It appends a stamp to a file each
// 10 ms, and reports each one that the disk has: two writers, and stamps that are lost, show.
package main

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"time"
)

func main() {
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// write appends to a file, and reports to a UDP address.
func write(path, report string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	to, err := net.Dial("udp", report)
	if err != nil {
		return err
	}
	run, next := rand.Text(), time.NewTicker(10*time.Millisecond)
	for n := 1; ; n++ {
		stamp := fmt.Sprintf("%s %d", run, n)
		if _, err := f.WriteString(stamp + "\n"); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		_, _ = to.Write([]byte(stamp)) // the link may be cut
		<-next.C
	}
}
