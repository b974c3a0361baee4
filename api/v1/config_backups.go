package v1

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// BackupsConfig configures where the archives of backups lie, and how fast they are
// made.
type BackupsConfig struct {
	Path        string   `json:"path"`        // of the target local; Complete fills it in
	Concurrency int      `json:"concurrency"` // backups and restores at once
	Bandwidth   Size     `json:"bandwidth"`   // archive bytes per second of all of them; 0: no limit
	S3          S3Config `json:"s3"`

	MaxSize      Size `json:"max_size"`       // of all archives of the target local; 0: no limit
	MaxPerVolume int  `json:"max_per_volume"` // backups of a volume

	// MaxVolumeSize is the limit of all archives of a volume that has a limit, or ten times
	// that limit if it is more; 0: no limit.
	MaxVolumeSize Size `json:"max_volume_size"`
}

// MaxSizeOf returns the limit of all archives of a target in bytes; 0: none.
func (b BackupsConfig) MaxSizeOf(t Target) int64 {
	if t == TargetS3 {
		return int64(b.S3.MaxSize)
	}
	return int64(b.MaxSize)
}

// BackupUse is what counts against the limits of backups before a new one.
type BackupUse struct {
	Volume int   // backups of its volume
	Host   int64 // backups of all volumes
	Bytes  int64 // of the archives of its target

	VolumeBytes int64 // of the archives of its volume
	VolumeMost  int64 // how many bytes those may have; 0: no limit
}

// Admit returns why one more backup is refused: an Error of the code TooManyBackups or
// BackupsFull; nil if it is not.
func (b BackupsConfig) Admit(t Target, u BackupUse) error {
	limit := b.MaxSizeOf(t)
	switch {
	case u.VolumeMost > 0 && u.VolumeBytes >= u.VolumeMost:
		return Errorf(BackupsFull, "The backups of the volume have %d MiB, which is the limit (backups.max_volume_size): delete some of them",
			u.VolumeBytes>>20)
	case u.Volume >= b.MaxPerVolume:
		return Errorf(TooManyBackups, "The volume has %d backups (backups.max_per_volume): delete some of them", u.Volume)
	case u.Host >= MaxBackups:
		return Errorf(TooManyBackups, "Too many backups are stored: delete some of them")
	case limit > 0 && u.Bytes >= limit:
		return BackupsFullError(t)
	}
	return nil
}

// BackupsFullError returns the refusal of a backup for which a target has no space.
func BackupsFullError(t Target) *Error {
	key := "backups.max_size"
	if t == TargetS3 {
		key = "backups.s3.max_size"
	}
	return Errorf(BackupsFull, "The backups of the target %s have reached %s: delete some of them", t, key)
}

// S3Config names a bucket. Without an endpoint there is no target s3.
type S3Config struct {
	Endpoint  string `json:"endpoint"` // http or https URL
	Region    string `json:"region"`
	Bucket    string `json:"bucket"`
	Prefix    string `json:"prefix"` // folder of the archives in the bucket
	AccessKey string `json:"access_key"`
	SecretKey Secret `json:"secret_key"`
	PathStyle bool   `json:"path_style"` // the bucket stands in the path, not in the host name
	MaxSize   Size   `json:"max_size"`   // of all archives of the target s3; 0: no limit
}

// Enabled reports whether there is a target s3.
func (s S3Config) Enabled() bool { return s.Endpoint != "" }

var (
	bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*/?$`)
	regionPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

func (b BackupsConfig) validate(f *FieldErrors, s StorageConfig) {
	f.directory("backups.path", b.Path)
	path := filepath.Clean(b.Path)
	f.check(path == "." || path != filepath.Clean(s.DataPath) && path != filepath.Clean(s.VolumesPath), "backups.path",
		"must be neither storage.data_path nor storage.volumes_path")
	f.check(b.Concurrency > 0 && b.Concurrency <= 64, "backups.concurrency", "must be between 1 and 64")
	f.check(b.Bandwidth >= 0, "backups.bandwidth", "must not be negative")
	f.check(b.MaxSize >= 0, "backups.max_size", "must not be negative")
	f.check(b.MaxVolumeSize >= 0, "backups.max_volume_size", "must not be negative")
	f.check(b.MaxPerVolume >= 2 && b.MaxPerVolume <= MaxBackups, "backups.max_per_volume", "must be between 2 and %d", MaxBackups)
	b.S3.validate(f)
}

func (s S3Config) validate(f *FieldErrors) {
	u, err := url.Parse(s.Endpoint)
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
	f.check(s.Endpoint == "" || isURL, "backups.s3.endpoint", "must be an http or https URL without user, path or query")
	f.check(s.Region == "" || regionPattern.MatchString(s.Region), "backups.s3.region", "must be the name of a region such as us-east-1")
	f.check(s.Bucket == "" || bucketPattern.MatchString(s.Bucket), "backups.s3.bucket", "must be the name of a bucket")
	f.check(s.Prefix == "" || len(s.Prefix) <= 256 && prefixPattern.MatchString(s.Prefix) && !strings.Contains("/"+s.Prefix+"/", "/../"),
		"backups.s3.prefix", "must be a path such as berth/node1, at most 256 bytes of letters, digits, '_', '-', '.' and '/'")
	f.check(s.AccessKey == "" || printable.MatchString(s.AccessKey), "backups.s3.access_key", "must be printable, without spaces")
	f.check(s.SecretKey == "" || printable.MatchString(s.SecretKey.Reveal()), "backups.s3.secret_key", "must be printable, without spaces")
	f.check(s.MaxSize >= 0, "backups.s3.max_size", "must not be negative")
	if !s.Enabled() {
		return
	}
	f.check(s.Bucket != "", "backups.s3.bucket", "is required with backups.s3.endpoint")
	f.check(s.AccessKey != "", "backups.s3.access_key", "is required with backups.s3.endpoint")
	f.check(s.SecretKey != "", "backups.s3.secret_key", "is required with backups.s3.endpoint")
}
