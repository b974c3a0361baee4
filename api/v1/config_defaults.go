package v1

import (
	"path/filepath"
	"time"
)

// Defaults returns the configuration of an empty file. It has no token: there is no
// default for a secret.
func Defaults() Config {
	const day = Duration(24 * time.Hour)
	return Config{
		Server: ServerConfig{Host: "0.0.0.0", Port: 8070, BodyLimit: MiB},
		SFTP: SFTPConfig{Host: "0.0.0.0", Port: 2022, MaxSessions: 64, MaxSessionsPerToken: 8,
			IdleTimeout: Duration(15 * time.Minute)},
		Authorization: AuthorizationConfig{Enabled: true, MaxTTL: 30 * day},
		Storage: StorageConfig{
			DataPath:    "/var/lib/berth",
			MaxFileSize: 8 * MiB, MaxExtractSize: 10 * GiB, HardLimit: HardLimitAuto,
			UID: -1, GID: -1,
		},
		Docker: DockerConfig{PidsLimit: 512, NofileLimit: 16384, RootLimit: 10 * GiB, TmpSize: 128 * MiB, LogMaxSize: 20 * MiB, LogMaxFiles: 2,
			PullReserve: 5 * GiB, ImagesKept: Duration(24 * time.Hour)},
		Firewall: FirewallConfig{Backend: BackendAuto, EgressFilter: true},
		Reconcile: ReconcileConfig{
			Workers: 8, Resync: Duration(time.Minute), CreateWait: Duration(2 * time.Second),
			StartWarning: Duration(time.Minute), InstallWarning: Duration(10 * time.Minute),
			Backoff: BackoffConfig{
				Initial:    Duration(500 * time.Millisecond),
				Max:        Duration(5 * time.Minute),
				ResetAfter: Duration(10 * time.Minute),
			},
		},
		Events:  RetentionConfig{Retention: 7 * day, Max: 100_000},
		Audit:   RetentionConfig{Retention: 90 * day, Max: 1_000_000},
		Backups: BackupsConfig{Concurrency: 1, MaxPerVolume: 2000, MaxVolumeSize: 10 * GiB, S3: S3Config{Region: "us-east-1"}},
		UI:      UIConfig{Enabled: true},
		Log:     LogConfig{Level: "info", Format: "auto"},
	}
}

// Complete sets empty values that follow from other values.
func (c *Config) Complete() {
	if c.Storage.VolumesPath == "" {
		c.Storage.VolumesPath = filepath.Join(c.Storage.DataPath, "volumes")
	}
	if c.Backups.Path == "" {
		c.Backups.Path = filepath.Join(c.Storage.DataPath, "backups")
	}
	if c.SFTP.HostKey == "" {
		c.SFTP.HostKey = filepath.Join(c.Storage.DataPath, "sftp", "ed25519")
	}
}

// The backends of the firewall.
const (
	BackendAuto     = "auto" // iptables where it works, else none
	BackendIPTables = "iptables"
	BackendNone     = "none"
)
