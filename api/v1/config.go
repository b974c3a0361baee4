package v1

import "encoding/json"

// Config is the configuration. Its YAML keys, joined with dots, are the names in
// errors, flags and restart_required.
type Config struct {
	Server        ServerConfig        `yaml:"server" json:"server"`
	Authorization AuthorizationConfig `yaml:"authorization" json:"authorization"`
	Remote        RemoteConfig        `yaml:"remote" json:"remote"`
	Storage       StorageConfig       `yaml:"storage" json:"storage"`
	Docker        DockerConfig        `yaml:"docker" json:"docker"`
	Firewall      FirewallConfig      `yaml:"firewall" json:"firewall"`
	Reconcile     ReconcileConfig     `yaml:"reconcile" json:"reconcile"`
	Events        EventsConfig        `yaml:"events" json:"events"`
	Metrics       MetricsConfig       `yaml:"metrics" json:"metrics"`
	Log           LogConfig           `yaml:"log" json:"log"`
}

// ServerConfig configures the listener.
type ServerConfig struct {
	Host           string    `yaml:"host" json:"host"`
	Port           int       `yaml:"port" json:"port"` // 0: any free port
	TLS            TLSConfig `yaml:"tls" json:"tls"`
	BodyLimit      Size      `yaml:"body_limit" json:"body_limit"`           // of a JSON body
	AllowedOrigins []string  `yaml:"allowed_origins" json:"allowed_origins"` // of browsers: scheme://host[:port]
	TrustedProxies []string  `yaml:"trusted_proxies" json:"trusted_proxies"` // CIDRs
}

// TLSConfig names the PEM files of a certificate and its key. Both empty: no TLS.
type TLSConfig struct {
	Cert string `yaml:"cert" json:"cert"`
	Key  string `yaml:"key" json:"key"`
}

// Enabled reports whether the daemon serves TLS.
func (t TLSConfig) Enabled() bool { return t.Cert != "" || t.Key != "" }

// AuthorizationConfig configures the access to the interface.
type AuthorizationConfig struct {
	Enabled       bool     `yaml:"enabled" json:"enabled"`
	AllowInsecure bool     `yaml:"allow_insecure" json:"allow_insecure"` // not Enabled, beyond loopback
	Token         Secret   `yaml:"token" json:"token"`                   // the administrator's
	MaxTTL        Duration `yaml:"max_ttl" json:"max_ttl"`               // of minted tokens
}

// RemoteConfig configures the panel that receives every transition.
type RemoteConfig struct {
	Enabled bool   `yaml:"enabled" json:"enabled"`
	URL     string `yaml:"url" json:"url"`
	Token   Secret `yaml:"token" json:"token"`
	Node    string `yaml:"node" json:"node"` // name of this host in requests; empty: its hostname
}

// StorageConfig configures directories and the sizes of files.
type StorageConfig struct {
	DataPath       string `yaml:"data_path" json:"data_path"`
	VolumesPath    string `yaml:"volumes_path" json:"volumes_path"` // Complete fills it in
	MaxFileSize    Size   `yaml:"max_file_size" json:"max_file_size"`
	MaxExtractSize Size   `yaml:"max_extract_size" json:"max_extract_size"`
	HardLimit      string `yaml:"hard_limit" json:"hard_limit"` // auto or none
	UID            int    `yaml:"uid" json:"uid"`               // owner of files made through the API; -1: the daemon's own
	GID            int    `yaml:"gid" json:"gid"`
}

// DockerConfig configures the engine and the defaults of containers.
type DockerConfig struct {
	Host          string              `yaml:"host" json:"host"`                     // empty: DOCKER_HOST, or the engine's usual socket
	AllowedMounts []string            `yaml:"allowed_mounts" json:"allowed_mounts"` // host directories that mounts may lie under
	Registries    map[string]Registry `yaml:"registries" json:"registries"`         // by host
	Network       string              `yaml:"network" json:"network"`               // empty: a bridge of berth's own
	PidsLimit     int64               `yaml:"pids_limit" json:"pids_limit"`
	NofileLimit   int64               `yaml:"nofile_limit" json:"nofile_limit"` // open files of each process; 0: the engine's own
	RootLimit     Size                `yaml:"root_limit" json:"root_limit"`     // of the files of a container outside its volume; 0: no limit
	LogMaxSize    Size                `yaml:"log_max_size" json:"log_max_size"` // of one file of Docker's log
	LogMaxFiles   int                 `yaml:"log_max_files" json:"log_max_files"`
}

// Registry is the credentials for one registry.
type Registry struct {
	Username string `yaml:"username" json:"username"`
	Password Secret `yaml:"password" json:"password"`
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
	Backend string `yaml:"backend" json:"backend"` // auto, iptables or none

	// EgressFilter keeps containers from the provider's link-local services, the
	// gateway of their bridge and the daemon's own port.
	EgressFilter bool `yaml:"egress_filter" json:"egress_filter"`
}

// ReconcileConfig configures the controllers.
type ReconcileConfig struct {
	Workers    int           `yaml:"workers" json:"workers"`
	Resync     Duration      `yaml:"resync" json:"resync"`
	CreateWait Duration      `yaml:"create_wait" json:"create_wait"` // for the result of the image check
	Backoff    BackoffConfig `yaml:"backoff" json:"backoff"`
}

// BackoffConfig configures the delays between retries.
type BackoffConfig struct {
	Initial    Duration `yaml:"initial" json:"initial"`
	Max        Duration `yaml:"max" json:"max"`
	ResetAfter Duration `yaml:"reset_after" json:"reset_after"` // after a run of this duration crashes are counted from 0
}

// EventsConfig limits the stored transitions by age and number.
type EventsConfig struct {
	Retention Duration `yaml:"retention" json:"retention"`
	Max       int      `yaml:"max" json:"max"`
}

// MetricsConfig configures the access to the metrics.
type MetricsConfig struct {
	Public bool `yaml:"public" json:"public"`
}

// LogConfig configures the log.
type LogConfig struct {
	Level  string `yaml:"level" json:"level"`   // debug, info, warn or error
	Format string `yaml:"format" json:"format"` // auto, text or json
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

// Show returns the response of GET /remote/config. version is that of the daemon.
// Secrets are masked unless clear is true.
func (c Config) Show(version string, clear bool) ConfigView {
	token := func(s Secret) Clear {
		if !clear {
			s = Secret(s.String())
		}
		return Clear{s}
	}
	return ConfigView{
		Version:       version,
		Server:        ServerView{c.Server.Host, c.Server.Port},
		Authorization: AuthorizationView{c.Authorization.Enabled, token(c.Authorization.Token)},
		Remote:        RemoteView{c.Remote.Enabled, c.Remote.URL, token(c.Remote.Token)},
	}
}
