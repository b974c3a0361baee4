package docker

import (
	"bufio"
	"net"
	"os"
	"strconv"
	"strings"
)

// optionMTU is the option with the longest packet of a bridge network.
const optionMTU = "com.docker.network.driver.mtu"

// bridgeMTU is that of a network without the option.
const bridgeMTU = 1500

// routeMTU returns the longest packet of the default route in a file such as /proc/net/route: that of the
// route itself, or of its interface, as mtuOf returns it. It is 0 if there is no such route.
func routeMTU(file string, mtuOf func(name string) int) int {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	best, name, own := 0, "", 0 // metric, interface and MTU of the preferred route
	for s := bufio.NewScanner(f); s.Scan(); {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask MTU …
		fields := strings.Fields(s.Text())
		if len(fields) < 9 || fields[1] != "00000000" || fields[7] != "00000000" {
			continue
		}
		metric, err := strconv.Atoi(fields[6])
		if err == nil && (name == "" || metric < best) {
			best, name = metric, fields[0]
			own, _ = strconv.Atoi(fields[8]) // 0: the interface's
		}
	}
	if name == "" || own > 0 {
		return own
	}
	return mtuOf(name)
}

func interfaceMTU(name string) int {
	one, err := net.InterfaceByName(name)
	if err != nil {
		return 0
	}
	return one.MTU
}

// hostMTU returns the longest packet that the default route of this host lets through, where the engine is on
// it; else that of a network without the option.
func (n *network) hostMTU() int {
	if !strings.HasPrefix(n.conn.client().DaemonHost(), "unix://") {
		return bridgeMTU
	}
	if mtu := routeMTU("/proc/net/route", interfaceMTU); mtu > 0 {
		return mtu
	}
	return bridgeMTU
}
