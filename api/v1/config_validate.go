package v1

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	tokenPattern    = regexp.MustCompile(`^berth_[0-9a-f]{32}$`)
	printable       = regexp.MustCompile(`^[!-~]+$`)
	hostPattern     = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$`)
	registryPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]{1,5})?$`)
	labelPattern    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	namePattern     = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	// annotationPattern matches the key of an annotation, such as metallb.io/loadBalancerIPs.
	annotationPattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?$`)

	networkPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)
)

// IsToken reports whether text has the form of an access token: berth_ and 32
// lowercase hex digits.
func IsToken(text string) bool { return tokenPattern.MatchString(text) }

// Validate returns everything that is wrong with a complete configuration. It reads
// no file.
func (c Config) Validate() FieldErrors {
	var f FieldErrors
	c.Server.validate(&f)
	c.SFTP.validate(&f)
	f.check(!c.SFTP.Enabled || c.Authorization.Enabled || c.Authorization.AllowInsecure || IsLoopback(c.SFTP.Host), "authorization.enabled",
		"false needs a loopback sftp.host, or authorization.allow_insecure: true")
	c.Authorization.validate(&f, c.Server.Host)
	c.Remote.validate(&f)
	c.Storage.validate(&f)
	c.Docker.validate(&f)
	c.validateEngine(&f)
	c.Reconcile.validate(&f)
	f.oneOf("firewall.backend", c.Firewall.Backend, BackendAuto, BackendIPTables, BackendNone)
	f.check(c.Events.Retention >= Duration(time.Minute), "events.retention", "must be at least 1m")
	f.check(c.Events.Max > 0, "events.max", "must be above 0")
	f.check(c.Audit.Retention >= Duration(time.Minute), "audit.retention", "must be at least 1m")
	f.check(c.Audit.Max > 0, "audit.max", "must be above 0")
	c.Backups.validate(&f, c.Storage)
	f.check(c.Transfers.Outgoing > 0 && c.Transfers.Outgoing <= 64, "transfers.outgoing", "must be between 1 and 64")
	f.check(c.Transfers.Bandwidth == 0 || c.Transfers.Bandwidth >= LeastBandwidth, "transfers.bandwidth", "must be 0, or at least 64KiB")
	f.check(c.Transfers.Incoming >= 0 && c.Transfers.Incoming <= 64, "transfers.incoming", "must be between 0 and 64")
	f.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	f.oneOf("log.format", c.Log.Format, "auto", "text", "json")
	return f
}

func (s ServerConfig) validate(f *FieldErrors) {
	_, err := netip.ParseAddr(s.Host)
	f.check(err == nil || hostPattern.MatchString(s.Host), "server.host", "must be an address or a host name")
	f.check(s.Port >= 0 && s.Port <= 65535, "server.port", "must be between 0 and 65535")
	f.check(s.BodyLimit >= KiB && s.BodyLimit <= GiB, "server.body_limit", "must be between 1KiB and 1GiB")
	f.check(s.TLS.Cert != "" || s.TLS.Key == "", "server.tls.cert", "is required with server.tls.key")
	f.check(s.TLS.Key != "" || s.TLS.Cert == "", "server.tls.key", "is required with server.tls.cert")
	for i, o := range s.AllowedOrigins {
		f.check(isOrigin(o), fmt.Sprintf("server.allowed_origins[%d]", i), "must be scheme://host or scheme://host:port")
	}
	for i, p := range s.TrustedProxies {
		_, err := netip.ParsePrefix(p)
		f.check(err == nil, fmt.Sprintf("server.trusted_proxies[%d]", i), "must be a CIDR such as 10.0.0.0/8")
	}
}

func (s SFTPConfig) validate(f *FieldErrors) {
	_, err := netip.ParseAddr(s.Host)
	f.check(err == nil || hostPattern.MatchString(s.Host), "sftp.host", "must be an address or a host name")
	f.check(s.Port >= 0 && s.Port <= 65535, "sftp.port", "must be between 0 and 65535")
	f.directory("sftp.host_key", s.HostKey)
	for i, kind := range s.HostKeys {
		f.check(slices.Contains([]string{HostKeyECDSA, HostKeyRSA}, kind) && !slices.Contains(s.HostKeys[:i], kind),
			fmt.Sprintf("sftp.host_keys[%d]", i), "must be ecdsa or rsa, once: the ed25519 key is always there")
	}
	f.check(s.MaxSessions > 0 && s.MaxSessions <= 1024, "sftp.max_sessions", "must be between 1 and 1024")
	f.check(s.MaxSessionsPerToken > 0 && s.MaxSessionsPerToken <= 1024, "sftp.max_sessions_per_token", "must be between 1 and 1024")
	f.check(s.IdleTimeout >= Duration(time.Second), "sftp.idle_timeout", "must be at least 1s")
}

func (a AuthorizationConfig) validate(f *FieldErrors, host string) {
	f.check(!a.Enabled || a.Token != "", "authorization.token",
		"is required: `berth config init` writes a file with a fresh one")
	f.check(a.Token == "" || IsToken(a.Token.Reveal()), "authorization.token", "must be berth_ and 32 lowercase hex digits")
	f.check(a.MaxTTL >= Duration(time.Second), "authorization.max_ttl", "must be at least 1s")
	f.check(a.Enabled || a.AllowInsecure || IsLoopback(host), "authorization.enabled",
		"false needs a loopback server.host, or authorization.allow_insecure: true")
}

func (r RemoteConfig) validate(f *FieldErrors) {
	u, err := url.Parse(r.URL)
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.Fragment == ""
	f.check(r.URL != "" || !r.Enabled, "remote.url", "is required when remote.enabled is true")
	f.check(r.URL == "" || isURL, "remote.url", "must be an http or https URL without user or fragment")
	f.check(r.Token != "" || !r.Enabled, "remote.token", "is required when remote.enabled is true")
	f.check(r.Token == "" || printable.MatchString(r.Token.Reveal()), "remote.token", "must be printable, without spaces")
	f.check(len(r.Node) <= 253, "remote.node", "must be at most 253 bytes")
}

func (s StorageConfig) validate(f *FieldErrors) {
	f.directory("storage.data_path", s.DataPath)
	f.directory("storage.volumes_path", s.VolumesPath)
	f.check(s.MaxFileSize > 0 && s.MaxFileSize <= 32*MiB, "storage.max_file_size", "must be above 0 and at most 32MiB")
	f.check(s.MaxExtractSize > 0, "storage.max_extract_size", "must be above 0")
	f.oneOf("storage.hard_limit", s.HardLimit, HardLimitAuto, HardLimitOff)
	f.check(s.UID >= -1 && s.UID < 1<<32-1, "storage.uid", "must be a user id, or -1 for the daemon's own")
	f.check(s.GID >= -1 && s.GID < 1<<32-1, "storage.gid", "must be a group id, or -1 for the daemon's own")
}

// isEngine reports whether host has a form that the engine's client supports. It
// would take an unknown scheme, such as ssh, for tcp.
func isEngine(host string) bool {
	u, err := url.Parse(host)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "unix":
		return u.Host == "" && len(u.Path) > 1
	case "tcp", "http", "https":
		return u.Host != ""
	}
	return false
}

func (d DockerConfig) validate(f *FieldErrors) {
	f.check(d.Host == "" || isEngine(d.Host), "docker.host", "must be a URL such as unix:///var/run/docker.sock or tcp://127.0.0.1:2375")
	for i, path := range d.AllowedMounts {
		f.directory(fmt.Sprintf("docker.allowed_mounts[%d]", i), path)
	}
	for _, host := range slices.Sorted(maps.Keys(d.Registries)) {
		r := d.Registries[host]
		key := "docker.registries." + host
		f.check(registryPattern.MatchString(host), key, "must be the name of a host, with or without a port")
		f.check(r.Username != "" && r.Password != "", key, "needs a username and a password")
	}
	f.check(d.Network == "" || networkPattern.MatchString(d.Network) && d.Network != "host", "docker.network",
		"must be the name of a network, and not the host's")
	f.check(d.MTU == 0 || d.MTU >= 576 && d.MTU <= 65535, "docker.mtu",
		"must be between 576 and 65535, or 0 for that of the host's default route")
	f.check(d.PidsLimit > 0, "docker.pids_limit", "must be above 0")
	f.check(d.NofileLimit == 0 || d.NofileLimit >= 64 && d.NofileLimit <= 1<<20, "docker.nofile_limit", "must be 0 or between 64 and 1048576")
	f.check(d.RootLimit == 0 || d.RootLimit >= MiB, "docker.root_limit", "must be at least 1MiB, or 0 for no limit")
	f.check(d.TmpSize >= MiB && d.TmpSize <= 64*GiB, "docker.tmp_size", "must be between 1MiB and 64GiB")
	f.check(d.LogMaxSize >= 64*KiB, "docker.log_max_size", "must be at least 64KiB")
	f.check(d.PullReserve >= 0, "docker.pull_reserve", "must not be negative")
	f.check(d.ImagesKept == 0 || d.ImagesKept >= Duration(time.Second), "docker.image_retention", "must be at least 1s, or 0s for no end")
	f.check(d.LogMaxFiles > 0 && d.LogMaxFiles <= 1000, "docker.log_max_files", "must be between 1 and 1000")
}

// validateEngine checks the choice of the engine, and what an engine lacks.
func (c Config) validateEngine(f *FieldErrors) {
	f.oneOf("engine", c.Engine, EngineDocker, EngineKubernetes)
	k := c.Kubernetes
	if c.Engine != EngineKubernetes {
		f.check(len(k.Claims) == 0, "kubernetes.claims", "must be empty: only the engine kubernetes has claims")
		f.check(k.VolumeClass == "", "kubernetes.volume_class", "must be empty: only the engine kubernetes has claims")
		return
	}
	f.check(k.Kubeconfig == "" || filepath.IsAbs(k.Kubeconfig), "kubernetes.kubeconfig", "must be an absolute path")
	f.check(k.Namespace == "" || labelPattern.MatchString(k.Namespace), "kubernetes.namespace", "must be the name of a namespace")
	f.check(k.Namespace != "" || k.Kubeconfig == "", "kubernetes.namespace", "is required with kubernetes.kubeconfig")
	f.check(namePattern.MatchString(k.Claim), "kubernetes.claim", "must be the name of a persistent volume claim")
	k.validateClaims(f)
	f.check(k.VolumeClass == "" || namePattern.MatchString(k.VolumeClass), "kubernetes.volume_class", "must be the name of a StorageClass")
	f.check(k.VolumeSize >= MiB, "kubernetes.volume_size", "must be at least 1MiB")
	f.check(len(k.Claims) == 0 || c.Storage.HardLimit == HardLimitOff, "storage.hard_limit", "must be off with kubernetes.claims")
	f.check(k.RequestsPercent >= 1 && k.RequestsPercent <= 99, "kubernetes.requests_percent", "must be between 1 and 99")
	for i, host := range k.PlainRegistries {
		f.check(registryPattern.MatchString(host), fmt.Sprintf("kubernetes.plain_registries[%d]", i),
			"must be the name of a host, with or without a port")
	}
	f.check(k.KubeletCA == "" || filepath.IsAbs(k.KubeletCA), "kubernetes.kubelet_ca", "must be an absolute path")
	f.oneOf("kubernetes.ports", k.Ports, PortsHost, PortsService)
	f.check(k.LoadBalancerClass == "" || annotationPattern.MatchString(k.LoadBalancerClass), "kubernetes.load_balancer_class",
		"must be the name of a class")
	for i, text := range k.ServiceAnnotations {
		key, _, found := strings.Cut(text, "=")
		f.check(found && annotationPattern.MatchString(key), fmt.Sprintf("kubernetes.service_annotations[%d]", i), "must be key=value")
	}
	k.validatePlacement(f)
	f.check(len(c.Docker.AllowedMounts) == 0, "docker.allowed_mounts",
		"must be empty: the engine kubernetes cannot mount directories of a host")
	f.check(c.Firewall.Backend != BackendIPTables, "firewall.backend", "must be none: network policies are the firewall of a cluster")
}

func (k KubernetesConfig) validateClaims(f *FieldErrors) {
	names := map[string]bool{k.Claim: true}
	for _, name := range slices.Sorted(maps.Keys(k.Claims)) {
		one, at := k.Claims[name], "kubernetes.claims."+name
		f.check(labelPattern.MatchString(name), at, "must have a name of at most 63 small letters, digits and -")
		f.check(namePattern.MatchString(one.Claim), at, "must have the name of a persistent volume claim, claim")
		f.check(!names[one.Claim], at, "must have a claim of its own")
		f.check(one.SizeLimit >= 0, at, "must have no negative size_limit")
		names[one.Claim] = true
	}
}

// The engines.
const (
	EngineDocker     = "docker"
	EngineKubernetes = "kubernetes"
)

func (r ReconcileConfig) validate(f *FieldErrors) {
	f.check(r.Workers > 0 && r.Workers <= 256, "reconcile.workers", "must be between 1 and 256")
	f.check(r.Resync >= Duration(time.Second), "reconcile.resync", "must be at least 1s")
	f.check(r.CreateWait >= 0 && r.CreateWait <= Duration(time.Minute), "reconcile.create_wait", "must be between 0s and 1m")
	f.check(r.StartWarning >= 0, "reconcile.start_warning", "must not be negative")
	f.check(r.InstallWarning >= 0, "reconcile.install_warning", "must not be negative")
	f.check(r.Backoff.Initial >= Duration(time.Millisecond), "reconcile.backoff.initial", "must be at least 1ms")
	f.check(r.Backoff.Max >= r.Backoff.Initial, "reconcile.backoff.max", "must be at least reconcile.backoff.initial")
	f.check(r.Backoff.ResetAfter > 0, "reconcile.backoff.reset_after", "must be above 0s")
}

func (f *FieldErrors) oneOf(key, value string, allowed ...string) {
	f.check(slices.Contains(allowed, value), key, "must be one of %s", strings.Join(allowed, ", "))
}

func (f *FieldErrors) directory(key, path string) {
	f.check(filepath.IsAbs(path) && filepath.Clean(path) != "/" && !strings.ContainsRune(path, 0), key,
		"must be an absolute path, and not the root")
}

// isOrigin reports whether text has the form of a browser's Origin header.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && text == u.Scheme+"://"+u.Host
}

// IsLoopback reports whether host is a loopback address or localhost.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Defaults returns the configuration of an empty file. It has no token: there is no
// default for a secret.
func Defaults() Config {
	const day = Duration(24 * time.Hour)
	return Config{
		Engine: EngineDocker,
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
		Kubernetes: KubernetesConfig{Claim: "berth-volumes", VolumeSize: 10 * GiB, RequestsPercent: 50, Ports: PortsHost},
		Firewall:   FirewallConfig{Backend: BackendAuto, EgressFilter: true},
		Reconcile: ReconcileConfig{
			Workers: 8, Resync: Duration(time.Minute), CreateWait: Duration(2 * time.Second),
			StartWarning: Duration(time.Minute), InstallWarning: Duration(10 * time.Minute),
			Backoff: BackoffConfig{
				Initial:    Duration(500 * time.Millisecond),
				Max:        Duration(5 * time.Minute),
				ResetAfter: Duration(10 * time.Minute),
			},
		},
		Events:    RetentionConfig{Retention: 7 * day, Max: 100_000},
		Audit:     RetentionConfig{Retention: 90 * day, Max: 1_000_000},
		Backups:   BackupsConfig{Concurrency: 1, MaxPerVolume: 2000, MaxVolumeSize: 10 * GiB, S3: S3Config{Region: "us-east-1"}},
		Transfers: TransfersConfig{Outgoing: 2, Incoming: 4, Private: true},
		UI:        UIConfig{Enabled: true},
		Log:       LogConfig{Level: "info", Format: "auto"},
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
	if c.Engine == EngineKubernetes && c.Firewall.Backend == BackendAuto {
		c.Firewall.Backend = BackendNone
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
