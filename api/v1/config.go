package v1

import (
	"encoding/json"
	"path/filepath"
)

// Config is the configuration. Its YAML keys, joined with dots, are the names in
// errors, flags and restart_required.
type Config struct {
	Engine        string              `json:"engine"` // docker or kubernetes
	Server        ServerConfig        `json:"server"`
	SFTP          SFTPConfig          `json:"sftp"`
	Authorization AuthorizationConfig `json:"authorization"`
	Remote        RemoteConfig        `json:"remote"`
	Storage       StorageConfig       `json:"storage"`
	Docker        DockerConfig        `json:"docker"`
	Kubernetes    KubernetesConfig    `json:"kubernetes"`
	Firewall      FirewallConfig      `json:"firewall"`
	Reconcile     ReconcileConfig     `json:"reconcile"`
	Events        RetentionConfig     `json:"events"`
	Audit         RetentionConfig     `json:"audit"`
	Backups       BackupsConfig       `json:"backups"`
	Files         FilesConfig         `json:"files"`
	Transfers     TransfersConfig     `json:"transfers"`
	Metrics       MetricsConfig       `json:"metrics"`
	UI            UIConfig            `json:"ui"`
	Debug         DebugConfig         `json:"debug"`
	Log           LogConfig           `json:"log"`
}

// ServerConfig configures the listener.
type ServerConfig struct {
	Host           string    `json:"host"`
	Port           int       `json:"port"` // 0: any free port
	TLS            TLSConfig `json:"tls"`
	BodyLimit      Size      `json:"body_limit"`      // of a JSON body
	AllowedOrigins []string  `json:"allowed_origins"` // of web pages: scheme://host[:port]
	TrustedProxies []string  `json:"trusted_proxies"` // CIDRs
}

// TLSConfig names the PEM files of a certificate and its key. Both empty: no TLS.
type TLSConfig struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Enabled reports whether the daemon serves TLS.
func (t TLSConfig) Enabled() bool { return t.Cert != "" || t.Key != "" }

// SFTPConfig configures the access to the files of volumes with SFTP.
type SFTPConfig struct {
	Enabled bool   `json:"enabled"`
	Host    string `json:"host"`
	Port    int    `json:"port"`     // 0: any free port
	HostKey string `json:"host_key"` // file of the ed25519 private key; Complete fills it in

	HostKeys []string `json:"host_keys"` // kinds of further ones, whose files are beside HostKey

	MaxSessions         int      `json:"max_sessions"`           // logged-in connections at once
	MaxSessionsPerToken int      `json:"max_sessions_per_token"` // of one minted token and those minted with it
	IdleTimeout         Duration `json:"idle_timeout"`           // without a request or a part of an answer
}

// SFTPVersion identifies the server to clients. OpenSSH has the arguments of a symbolic link in another
// order than the draft of the protocol, and package sftp follows it. Clients that follow the draft, such
// as asyncssh, libssh and WinSCP, use OpenSSH's order only where the version names OpenSSH.
const SFTPVersion = "SSH-2.0-OpenSSH_9.9 berth"

// The kinds of host keys of SFTP.
const (
	HostKeyED25519 = "ed25519"
	HostKeyECDSA   = "ecdsa"
	HostKeyRSA     = "rsa"
)

// HostKeyFile returns the file of the host key of a kind, which is beside that of the ed25519 key.
func HostKeyFile(ed25519, kind string) string {
	if kind == HostKeyED25519 {
		return ed25519
	}
	return filepath.Join(filepath.Dir(ed25519), kind)
}

// AuthorizationConfig configures the access to the interface.
type AuthorizationConfig struct {
	Enabled       bool     `json:"enabled"`
	AllowInsecure bool     `json:"allow_insecure"` // not Enabled, beyond loopback
	Token         Secret   `json:"token"`          // the administrator's
	MaxTTL        Duration `json:"max_ttl"`        // of minted tokens
}

// RemoteConfig configures the panel that receives every transition.
type RemoteConfig struct {
	Enabled bool   `json:"enabled"`
	URL     string `json:"url"`
	Token   Secret `json:"token"`
	Node    string `json:"node"` // name of this host in requests; empty: its hostname
}

// StorageConfig configures directories and the sizes of files.
type StorageConfig struct {
	DataPath       string `json:"data_path"`
	VolumesPath    string `json:"volumes_path"` // Complete fills it in
	MaxFileSize    Size   `json:"max_file_size"`
	MaxExtractSize Size   `json:"max_extract_size"`
	HardLimit      string `json:"hard_limit"` // auto or off
	UID            int    `json:"uid"`        // owner of the root folder of a new volume; -1: the daemon's own
	GID            int    `json:"gid"`
}

// DockerConfig configures the engine and the defaults of containers.
type DockerConfig struct {
	Host          string              `json:"host"`           // empty: DOCKER_HOST, or the engine's usual socket
	AllowedMounts []string            `json:"allowed_mounts"` // host directories that mounts may lie under
	Registries    map[string]Registry `json:"registries"`     // by host
	Network       string              `json:"network"`        // empty: a bridge of berth's own
	// longest packet of the network that berth creates; 0: that of the host's default route
	MTU          int   `json:"mtu"`
	PidsLimit    int64 `json:"pids_limit"`
	NofileLimit  int64 `json:"nofile_limit"`   // open files of each process; 0: the engine's own
	RootLimit    Size  `json:"root_limit"`     // of the files of a container outside its volume; 0: no limit
	ReadOnlyRoot bool  `json:"read_only_root"` // of containers whose request does not set it
	TmpSize      Size  `json:"tmp_size"`       // of each tmpfs of a container with a read-only root
	LogMaxSize   Size  `json:"log_max_size"`   // of one file of Docker's log
	LogMaxFiles  int   `json:"log_max_files"`
	// free space of the engine's disk for a pull, or a tenth of the disk if that is more; 0: none
	PullReserve Size     `json:"pull_reserve"`
	ImagesKept  Duration `json:"image_retention"` // of images that berth has pulled and no container names; 0: for ever
}

// KubernetesConfig configures the engine kubernetes. Registries, RootLimit, ReadOnlyRoot and TmpSize
// of DockerConfig hold for both engines, its other keys for Docker alone.
type KubernetesConfig struct {
	Kubeconfig      string                 `json:"kubeconfig"`       // file with an address and credentials; empty: those of berth's pod
	Namespace       string                 `json:"namespace"`        // of the pods; empty: that of the pod that berth runs in
	Claim           string                 `json:"claim"`            // the persistent volume claim at storage.volumes_path
	Claims          map[string]VolumeClaim `json:"claims"`           // further claims with volumes, by the storage that a volume names
	VolumeClass     string                 `json:"volume_class"`     // StorageClass of the claims of new volumes; empty: they lie on Claim
	VolumeSize      Size                   `json:"volume_size"`      // of such a claim whose volume has no limit when it is created
	Keeper          string                 `json:"keeper"`           // path of berth-keeper; empty: beside berth
	RequestsPercent int                    `json:"requests_percent"` // of a limit of memory or processors, which the scheduler reserves
	PlainRegistries []string               `json:"plain_registries"` // that are asked without TLS, as host:port
	// file with the certificates that vouch for those of the kubelets; empty: the cluster's authority
	KubeletCA string `json:"kubelet_ca"`

	Ports              string   `json:"ports"`               // who publishes them: host or service
	LoadBalancerClass  string   `json:"load_balancer_class"` // of the Services; empty: the cluster's default
	ServiceAnnotations []string `json:"service_annotations"` // of the Services, as key=value; {ip} stands for the address

	AllowedPlacement []string `json:"allowed_placement"` // of containers, such as node_selector:pool=games; * is any value
	DefaultPlacement []string `json:"default_placement"` // of containers whose request has none
}

// VolumeClaim is a persistent volume claim with volumes, which is mounted at Config.VolumesIn.
type VolumeClaim struct {
	Claim     string `json:"claim"`      // its name
	SizeLimit Size   `json:"size_limit"` // of each volume at most, and of one whose request has none; 0: no limit
}

// VolumesIn returns the directory of the volumes with a storage.
func (c Config) VolumesIn(storage string) string {
	if storage == "" {
		return c.Storage.VolumesPath
	}
	return filepath.Join(c.Storage.DataPath, "claims", storage)
}

// Who publishes the ports of containers on a cluster.
const (
	PortsHost    = "host"    // the node that has their address
	PortsService = "service" // a load balancer
)

// Registry is the credentials for one registry.
type Registry struct {
	Username string `json:"username"`
	Password Secret `json:"password"`
}

// CanonicalRegistry returns the one name of Docker's own registry, docker.io, for
// each of its names, and any other host as it is.
func CanonicalRegistry(host string) string {
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		return "docker.io"
	}
	return host
}

// FirewallConfig configures the allow rules of the port pool.
type FirewallConfig struct {
	Backend string `json:"backend"` // auto, iptables or none

	// EgressFilter keeps containers from the provider's link-local services, the
	// gateway of their bridge and the daemon's own port.
	EgressFilter bool `json:"egress_filter"`
}

// ReconcileConfig configures the controllers.
type ReconcileConfig struct {
	Workers    int           `json:"workers"`
	Resync     Duration      `json:"resync"`
	CreateWait Duration      `json:"create_wait"` // for the result of the image check
	Backoff    BackoffConfig `json:"backoff"`

	// After these times clients and operators are warned; 0: never.
	StartWarning   Duration `json:"start_warning"`   // of a run whose start pattern has not matched
	InstallWarning Duration `json:"install_warning"` // of an installer that runs
}

// BackoffConfig configures the delays between retries.
type BackoffConfig struct {
	Initial    Duration `json:"initial"`
	Max        Duration `json:"max"`
	ResetAfter Duration `json:"reset_after"` // after a run of this duration crashes are counted from 0
}

// RetentionConfig limits the entries of a log by age and number.
type RetentionConfig struct {
	Retention Duration `json:"retention"`
	Max       int      `json:"max"`
}

// FilesConfig configures downloads of URLs into volumes.
type FilesConfig struct {
	Pull        bool `json:"pull"`
	PullPrivate bool `json:"pull_private"` // from addresses that are not public, too
}

// TransfersConfig configures transfers of containers to other nodes, and from them.
type TransfersConfig struct {
	Outgoing  int    `json:"outgoing"`  // that copy at once
	Incoming  int    `json:"incoming"`  // that have not ended
	Bandwidth Size   `json:"bandwidth"` // bytes a second that all of them send; 0: no limit
	Private   bool   `json:"private"`   // to addresses that are not public, too
	CA        string `json:"ca"`        // file with certificates of further authorities that vouch for other nodes
}

// MetricsConfig configures the access to the metrics.
type MetricsConfig struct {
	Public bool `json:"public"`
}

// DebugConfig configures what helps to find faults of the daemon.
type DebugConfig struct {
	Pprof bool `json:"pprof"` // GET /debug/pprof/ answers
}

// UIConfig configures the operator's page.
type UIConfig struct {
	Enabled bool `json:"enabled"`
}

// LogConfig configures the log.
type LogConfig struct {
	Level  string `json:"level"`  // debug, info, warn or error
	Format string `json:"format"` // auto, text or json
}

// ConfigView is the response of GET /remote/config. It is only for the administrator,
// and never logged.
type ConfigView struct {
	Version       string            `json:"version"`
	Server        ServerView        `json:"server"`
	Authorization AuthorizationView `json:"authorization"`
	Remote        RemoteView        `json:"remote"`
}

// ServerView is the server section of ConfigView.
type ServerView struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// AuthorizationView is the authorization section of ConfigView.
type AuthorizationView struct {
	Enabled bool  `json:"enabled"`
	Token   Clear `json:"token"`
}

// RemoteView is the remote section of ConfigView.
type RemoteView struct {
	Enabled bool   `json:"enabled"`
	URL     string `json:"url"`
	Token   Clear  `json:"token"`
}

// Clear is a Secret whose JSON shows the value. Everything else prints ***.
type Clear struct{ Secret }

// MarshalJSON writes the value.
func (c Clear) MarshalJSON() ([]byte, error) { return json.Marshal(c.Reveal()) }

// UnmarshalJSON reads the value.
func (c *Clear) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &c.Secret) }

// Reveal returns the response of GET /remote/config with its secrets. version is that of the daemon.
func (c Config) Reveal(version string) ConfigView {
	return ConfigView{
		Version:       version,
		Server:        ServerView{c.Server.Host, c.Server.Port},
		Authorization: AuthorizationView{c.Authorization.Enabled, Clear{c.Authorization.Token}},
		Remote:        RemoteView{c.Remote.Enabled, c.Remote.URL, Clear{c.Remote.Token}},
	}
}

// Show is Reveal with masked secrets.
func (c Config) Show(version string) ConfigView {
	c.Authorization.Token = Secret(c.Authorization.Token.String())
	c.Remote.Token = Secret(c.Remote.Token.String())
	return c.Reveal(version)
}
