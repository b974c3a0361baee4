package fake_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
	"berth/runtime/conform"
	"berth/runtime/fake"
)

func TestConform(t *testing.T) {
	e := fake.New(nil)
	e.Outside.AddImage("img")
	e.Outside.RefusePull("none", runtime.ErrImageNotFound)
	e.Outside.RequireAuth("locked", runtime.Auth{Host: "registry.example", Username: "me", Password: "secret"})
	e.OnStart = func(s runtime.Spec) { play(e, s) }
	e.OnInput = func(n runtime.Name, data []byte) {
		if string(data) == "show\n" {
			data = showLimits(t, e, n)
		}
		e.Outside.Say(n, string(data))
	}
	var ports, dirs atomic.Int64
	host := e.Outside.Host()
	conform.Run(t, &conform.Harness{
		Engine: e, Image: "img", Pullable: "pullable", Missing: "none",
		Locked: "locked", Auth: runtime.Auth{Host: "registry.example", Username: "me", Password: "secret"},
		Dir:     func(*testing.T) string { return "/dir" + strings.Repeat("x", int(dirs.Add(1))) },
		DropDir: func(_ *testing.T, dir string) { host.LoseDirectory(dir) },
		Port:    func(*testing.T) int { return 20000 + int(ports.Add(1)) },
		Occupy: func(_ *testing.T, port int) func() {
			host.TakePort("127.0.0.1", port, "tcp")
			return func() { host.FreePort("127.0.0.1", port, "tcp") }
		},
		Pause:   func(_ *testing.T, n runtime.Name) { e.Outside.Pause(n) },
		Vanish:  func(_ *testing.T, n runtime.Name) { e.Outside.Vanish(n) },
		Outside: func(t *testing.T, n runtime.Name) { require.NoError(t, e.Outside.StartOutside(n)) },
		Foreign: func(_ *testing.T, n runtime.Name) func() {
			host.Foreign(n)
			return func() {}
		},
	})
}

// showLimits imitates conform.ShowsLimits.
func showLimits(t *testing.T, e *fake.Engine, n runtime.Name) []byte {
	s, err := e.Inspect(t.Context(), n)
	require.NoError(t, err)
	return fmt.Appendf(nil, "%d %.0f 1000000000 %d\n", s.Live.Memory, s.Live.CPU*1e9, s.Live.Pids)
}

// play imitates the suite's commands.
func play(e *fake.Engine, s runtime.Spec) {
	switch command := strings.Join(s.Command, " "); command {
	case strings.Join(conform.ExitsWith3, " "):
		e.Outside.Exit(s.Name, 3)
	case strings.Join(conform.SaysThree, " "):
		e.Outside.Say(s.Name, "one\ntwo\nthree\n")
		e.Outside.Exit(s.Name, 0)
	case strings.Join(conform.SaysOne, " "):
		e.Outside.Say(s.Name, "one\n")
	case strings.Join(conform.EatsMemory, " "):
		e.Outside.OOM(s.Name)
	case strings.Join(conform.Ignores, " "):
		e.Outside.Deafen(s.Name)
	}
}
