package v1

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllocatedSums(t *testing.T) {
	sum := Allocated{}.Add(Limits{Memory: 1, CPU: 0.5, Disk: 10}).Add(Limits{}).Add(Limits{Memory: 2, CPU: 1, Disk: 20, Swap: UnlimitedSwap})
	require.Equal(t, Allocated{Memory: 3, CPU: 1.5, Disk: 30}, sum)
	require.Equal(t, Allocated{Memory: math.MaxInt64, CPU: 1.5, Disk: math.MaxInt64}, sum.Add(Limits{Memory: math.MaxInt64, Disk: math.MaxInt64 - 29}))
}

// TestFeatures switches on one feature after the other.
func TestFeatures(t *testing.T) {
	for name, on := range map[string]func(*Config){
		"remote":         func(c *Config) { c.Remote.Enabled = true },
		"tls":            func(c *Config) { c.Server.TLS.Cert = "x" },
		"hard_limits":    func(c *Config) { c.Storage.HardLimit = HardLimitAuto },
		"read_only_root": func(c *Config) { c.Docker.ReadOnlyRoot = true },
		"mounts":         func(c *Config) { c.Docker.AllowedMounts = []string{"/srv"} },
		"firewall":       func(c *Config) { c.Firewall.Backend = BackendAuto },
		"egress_filter":  func(c *Config) { c.Firewall = FirewallConfig{Backend: BackendAuto, EgressFilter: true} },
		"public_metrics": func(c *Config) { c.Metrics.Public = true },
		"ui":             func(c *Config) { c.UI.Enabled = true },
		"pprof":          func(c *Config) { c.Debug.Pprof = true },
		"sftp":           func(c *Config) { c.SFTP.Enabled = true },
		"pull":           func(c *Config) { c.Files.Pull = true },
		"backups_s3":     func(c *Config) { c.Backups.S3.Endpoint = "https://s3.example" },
	} {
		off := Config{Firewall: FirewallConfig{Backend: BackendNone, EgressFilter: true}}
		before := off.Features()
		require.Contains(t, before, name)
		require.False(t, before[name], name)
		on(&off)
		require.True(t, off.Features()[name], name)
	}
}
