package doctor

import "context"

// check is one row of the table.
type check struct {
	name string
	run  func(ctx context.Context, e *examination) Result
}

// checks returns the table of all checks, in the order of the report.
func checks() []check {
	return []check{
		{"configuration", checkConfiguration},
		{"tls", checkTLS},
		{"daemon", checkDaemon},
		{"store", checkStore},
		{"disk", checkDisk},
		{"volumes", checkVolumes},
		{"engine", checkEngine},
		{"engine-defects", checkDefects},
		{"live-restore", checkLiveRestore},
		{"storage-driver", checkStorageDriver},
		{"cgroup", checkCgroup},
		{"limits", checkLimits},
		{"inotify", checkInotify},
		{"file-limits", checkFiles},
		{"firewall", checkFirewall},
		{"firewalld", checkFirewalld},
		{"clock", checkClock},
		{"panel", checkPanel},
		{"backups", checkBackups},
		{"sftp", checkSFTP},
	}
}
