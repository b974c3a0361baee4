package v1

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const testToken = "berth_0123456789abcdef0123456789abcdef"

// valid returns a valid configuration.
func valid() Config {
	c := Defaults()
	c.Authorization.Token = testToken
	c.Complete()
	return c
}

func TestDefaultsNeedOnlyToken(t *testing.T) {
	require.NoError(t, valid().Validate().Err())
	c := Defaults()
	c.Complete()
	require.Len(t, c.Validate(), 1)
	require.Equal(t, "authorization.token", c.Validate()[0].Key)
	require.Equal(t, "/var/lib/berth/volumes", c.Storage.VolumesPath)
	require.Equal(t, "/var/lib/berth/backups", c.Backups.Path)
}

// cluster chooses the engine kubernetes.
func cluster(c *Config) {
	c.Engine, c.Firewall.Backend = EngineKubernetes, BackendAuto
	c.Kubernetes.Kubeconfig, c.Kubernetes.Namespace = "/etc/kubeconfig", "servers"
	c.Complete()
}

func claims(c *Config, list map[string]VolumeClaim) {
	c.Kubernetes.Claims, c.Storage.HardLimit = list, HardLimitOff
}

func TestClusterHasNoFirewall(t *testing.T) {
	c := valid()
	cluster(&c)
	require.NoError(t, c.Validate().Err())
	require.Equal(t, BackendNone, c.Firewall.Backend)
	require.False(t, c.Features()["egress_filter"])
	c = valid()
	c.Kubernetes.Claim = ""
	require.NoError(t, c.Validate().Err(), "Docker needs none of it")
}

// bucket returns the configuration of a bucket at endpoint.
func bucket(endpoint string) S3Config {
	return S3Config{Endpoint: endpoint, Region: "eu-1", Bucket: "backups", Prefix: "a.b/c_d/", AccessKey: "id", SecretKey: "bucket-secret", PathStyle: true}
}

// faults has a row for each bad input of each key.
var faults = []struct {
	key    string
	change func(*Config)
}{
	{"server.host", func(c *Config) { c.Server.Host = "" }},
	{"server.host", func(c *Config) { c.Server.Host = "a b" }},
	{"server.host", func(c *Config) { c.Server.Host = "[::1]" }},
	{"server.port", func(c *Config) { c.Server.Port = -1 }},
	{"server.port", func(c *Config) { c.Server.Port = 65536 }},
	{"server.body_limit", func(c *Config) { c.Server.BodyLimit = 1023 }},
	{"server.body_limit", func(c *Config) { c.Server.BodyLimit = GiB + 1 }},
	{"server.tls.cert", func(c *Config) { c.Server.TLS.Key = "/k" }},
	{"server.tls.key", func(c *Config) { c.Server.TLS.Cert = "/c" }},
	{"server.allowed_origins[0]", func(c *Config) { c.Server.AllowedOrigins = []string{"*"} }},
	{"server.allowed_origins[0]", func(c *Config) { c.Server.AllowedOrigins = []string{"https://a/"} }},
	{"server.allowed_origins[1]", func(c *Config) { c.Server.AllowedOrigins = []string{"https://a", "a.b"} }},
	{"server.trusted_proxies[0]", func(c *Config) { c.Server.TrustedProxies = []string{"10.0.0.1"} }},
	{"engine", func(c *Config) { c.Engine = "podman" }},
	{"kubernetes.kubeconfig", func(c *Config) { cluster(c); c.Kubernetes.Kubeconfig = "config" }},
	{"kubernetes.namespace", func(c *Config) { cluster(c); c.Kubernetes.Namespace = "a.b" }},
	{"kubernetes.namespace", func(c *Config) { cluster(c); c.Kubernetes.Namespace = "" }},
	{"kubernetes.claim", func(c *Config) { cluster(c); c.Kubernetes.Claim = "../x" }},
	{"kubernetes.volume_class", func(c *Config) { c.Kubernetes.VolumeClass = "nfs" }},
	{"kubernetes.volume_class", func(c *Config) { cluster(c); c.Kubernetes.VolumeClass = "N/fs" }},
	{"kubernetes.volume_size", func(c *Config) { cluster(c); c.Kubernetes.VolumeSize = 0 }},
	{"kubernetes.claims", func(c *Config) { c.Kubernetes.Claims = map[string]VolumeClaim{"a": {Claim: "b"}} }},
	{"kubernetes.claims.A/b", func(c *Config) { cluster(c); claims(c, map[string]VolumeClaim{"A/b": {Claim: "b"}}) }},
	{"kubernetes.claims.a", func(c *Config) { cluster(c); claims(c, map[string]VolumeClaim{"a": {}}) }},
	{"kubernetes.claims.a", func(c *Config) { cluster(c); claims(c, map[string]VolumeClaim{"a": {Claim: c.Kubernetes.Claim}}) }},
	{"kubernetes.claims.b", func(c *Config) { cluster(c); claims(c, map[string]VolumeClaim{"a": {Claim: "c"}, "b": {Claim: "c"}}) }},
	{"kubernetes.claims.a", func(c *Config) { cluster(c); claims(c, map[string]VolumeClaim{"a": {Claim: "b", SizeLimit: -1}}) }},
	{"storage.hard_limit", func(c *Config) {
		cluster(c)
		claims(c, map[string]VolumeClaim{"a": {Claim: "b"}})
		c.Storage.HardLimit = HardLimitAuto
	}},
	{"kubernetes.requests_percent", func(c *Config) { cluster(c); c.Kubernetes.RequestsPercent = 100 }},
	{"kubernetes.plain_registries[0]", func(c *Config) { cluster(c); c.Kubernetes.PlainRegistries = []string{"http://r"} }},
	{"kubernetes.kubelet_ca", func(c *Config) { cluster(c); c.Kubernetes.KubeletCA = "ca.crt" }},
	{"kubernetes.ports", func(c *Config) { cluster(c); c.Kubernetes.Ports = "node" }},
	{"kubernetes.load_balancer_class", func(c *Config) { cluster(c); c.Kubernetes.LoadBalancerClass = "a b" }},
	{"kubernetes.service_annotations[0]", func(c *Config) { cluster(c); c.Kubernetes.ServiceAnnotations = []string{"a/b"} }},
	{"kubernetes.allowed_placement[0]", func(c *Config) { cluster(c); c.Kubernetes.AllowedPlacement = []string{"node_selector:pool"} }},
	{"kubernetes.allowed_placement[1]", func(c *Config) {
		cluster(c)
		c.Kubernetes.AllowedPlacement = []string{"node_selector:pool=*", "node_selector:kubernetes.io/arch=arm64"}
	}},
	{"kubernetes.default_placement[0]", func(c *Config) { cluster(c); c.Kubernetes.DefaultPlacement = []string{"node_selector:pool=*"} }},
	{"kubernetes.default_placement[1]", func(c *Config) {
		cluster(c)
		c.Kubernetes.DefaultPlacement = []string{"toleration:dedicated=*", "runtime_class:A"}
	}},
	{"kubernetes.service_annotations[1]", func(c *Config) { cluster(c); c.Kubernetes.ServiceAnnotations = []string{"a/b={ip}", "a b=c"} }},
	{"docker.allowed_mounts", func(c *Config) { cluster(c); c.Docker.AllowedMounts = []string{"/srv"} }},
	{"firewall.backend", func(c *Config) { cluster(c); c.Firewall.Backend = BackendIPTables }},
	{"authorization.token", func(c *Config) { c.Authorization.Token = "" }},
	{"authorization.token", func(c *Config) { c.Authorization.Token = "secret" }},
	{"authorization.token", func(c *Config) { c.Authorization.Token = Secret(strings.ToUpper(testToken)) }},
	{"authorization.max_ttl", func(c *Config) { c.Authorization.MaxTTL = 0 }},
	{"authorization.max_ttl", func(c *Config) { c.Authorization.MaxTTL = -1 }},
	{"authorization.enabled", func(c *Config) { c.Authorization.Enabled = false }},
	{"authorization.enabled", func(c *Config) { c.Authorization.Enabled = false; c.Server.Host = "::" }},
	{"authorization.enabled", func(c *Config) { c.Authorization.Enabled = false; c.Server.Host = "panel.example" }},
	{"remote.url", func(c *Config) { c.Remote = RemoteConfig{Enabled: true, Token: "t"} }},
	{"remote.url", func(c *Config) { c.Remote.URL = "panel" }},
	{"remote.url", func(c *Config) { c.Remote.URL = "ftp://panel/x" }},
	{"remote.url", func(c *Config) { c.Remote.URL = "http://me:word@panel/" }},
	{"remote.url", func(c *Config) { c.Remote.URL = "http://" }},
	{"remote.token", func(c *Config) { c.Remote = RemoteConfig{Enabled: true, URL: "http://panel"} }},
	{"remote.token", func(c *Config) { c.Remote.Token = "a\nb" }},
	{"remote.node", func(c *Config) { c.Remote.Node = strings.Repeat("n", 254) }},
	{"storage.data_path", func(c *Config) { c.Storage.DataPath = "data" }},
	{"storage.data_path", func(c *Config) { c.Storage.DataPath = "/" }},
	{"storage.volumes_path", func(c *Config) { c.Storage.VolumesPath = "/.." }},
	{"storage.volumes_path", func(c *Config) { c.Storage.VolumesPath = "/a\x00b" }},
	{"storage.max_file_size", func(c *Config) { c.Storage.MaxFileSize = 0 }},
	{"storage.hard_limit", func(c *Config) { c.Storage.HardLimit = "some" }},
	{"storage.max_extract_size", func(c *Config) { c.Storage.MaxExtractSize = -1 }},
	{"storage.uid", func(c *Config) { c.Storage.UID = -2 }},
	{"storage.gid", func(c *Config) { c.Storage.GID = 1<<32 - 1 }},
	{"docker.host", func(c *Config) { c.Docker.Host = "docker.sock" }},
	{"docker.host", func(c *Config) { c.Docker.Host = "unix://run/docker.sock" }},
	{"docker.host", func(c *Config) { c.Docker.Host = "tcp://" }},
	{"docker.host", func(c *Config) { c.Docker.Host = "ssh://root@host" }},
	{"docker.nofile_limit", func(c *Config) { c.Docker.NofileLimit = 10 }},
	{"docker.allowed_mounts[0]", func(c *Config) { c.Docker.AllowedMounts = []string{"/"} }},
	{"docker.registries.ghcr.io", func(c *Config) { c.Docker.Registries = map[string]Registry{"ghcr.io": {Username: "u"}} }},
	{"docker.registries.https://x", func(c *Config) {
		c.Docker.Registries = map[string]Registry{"https://x": {Username: "u", Password: "p"}}
	}},
	{"docker.network", func(c *Config) { c.Docker.Network = "-x" }},
	{"docker.network", func(c *Config) { c.Docker.Network = "host" }},
	{"docker.mtu", func(c *Config) { c.Docker.MTU = 575 }},
	{"docker.mtu", func(c *Config) { c.Docker.MTU = 65536 }},
	{"docker.pids_limit", func(c *Config) { c.Docker.PidsLimit = 0 }},
	{"docker.root_limit", func(c *Config) { c.Docker.RootLimit = KiB }},
	{"docker.tmp_size", func(c *Config) { c.Docker.TmpSize = KiB }},
	{"docker.tmp_size", func(c *Config) { c.Docker.TmpSize = 65 * GiB }},
	{"docker.log_max_size", func(c *Config) { c.Docker.LogMaxSize = KiB }},
	{"docker.log_max_files", func(c *Config) { c.Docker.LogMaxFiles = 0 }},
	{"firewall.backend", func(c *Config) { c.Firewall.Backend = "nft" }},
	{"reconcile.workers", func(c *Config) { c.Reconcile.Workers = 0 }},
	{"reconcile.resync", func(c *Config) { c.Reconcile.Resync = Duration(time.Millisecond) }},
	{"reconcile.create_wait", func(c *Config) { c.Reconcile.CreateWait = -1 }},
	{"reconcile.backoff.initial", func(c *Config) { c.Reconcile.Backoff.Initial = 0 }},
	{"reconcile.backoff.max", func(c *Config) { c.Reconcile.Backoff.Max = 1 }},
	{"reconcile.backoff.reset_after", func(c *Config) { c.Reconcile.Backoff.ResetAfter = 0 }},
	{"events.retention", func(c *Config) { c.Events.Retention = 1 }},
	{"events.max", func(c *Config) { c.Events.Max = 0 }},
	{"audit.retention", func(c *Config) { c.Audit.Retention = 1 }},
	{"audit.max", func(c *Config) { c.Audit.Max = 0 }},
	{"backups.path", func(c *Config) { c.Backups.Path = "backups" }},
	{"backups.path", func(c *Config) { c.Backups.Path = "/" }},
	{"backups.path", func(c *Config) { c.Backups.Path = "/var/lib/berth/" }},
	{"backups.path", func(c *Config) { c.Backups.Path = "/var/lib/berth/volumes" }},
	{"backups.concurrency", func(c *Config) { c.Backups.Concurrency = 0 }},
	{"backups.concurrency", func(c *Config) { c.Backups.Concurrency = 65 }},
	{"backups.max_size", func(c *Config) { c.Backups.MaxSize = -1 }},
	{"backups.max_per_volume", func(c *Config) { c.Backups.MaxPerVolume = 1 }},
	{"backups.max_per_volume", func(c *Config) { c.Backups.MaxPerVolume = MaxBackups + 1 }},
	{"backups.s3.max_size", func(c *Config) { c.Backups.S3.MaxSize = -1 }},
	{"backups.bandwidth", func(c *Config) { c.Backups.Bandwidth = -1 }},
	{"backups.s3.endpoint", func(c *Config) { c.Backups.S3 = bucket("s3.example") }},
	{"backups.s3.endpoint", func(c *Config) { c.Backups.S3 = bucket("ftp://s3.example") }},
	{"backups.s3.endpoint", func(c *Config) { c.Backups.S3 = bucket("https://s3.example/bucket") }},
	{"backups.s3.endpoint", func(c *Config) { c.Backups.S3 = bucket("https://me:word@s3.example") }},
	{"backups.s3.region", func(c *Config) { c.Backups.S3.Region = "us east" }},
	{"backups.s3.bucket", func(c *Config) { c.Backups.S3.Bucket = "A" }},
	{"backups.s3.bucket", func(c *Config) { c.Backups.S3 = bucket("https://s3.example"); c.Backups.S3.Bucket = "" }},
	{"backups.s3.prefix", func(c *Config) { c.Backups.S3.Prefix = "/a" }},
	{"backups.s3.prefix", func(c *Config) { c.Backups.S3.Prefix = "a//b" }},
	{"backups.s3.prefix", func(c *Config) { c.Backups.S3.Prefix = "a/../b" }},
	{"backups.s3.access_key", func(c *Config) { c.Backups.S3 = bucket("https://s3.example"); c.Backups.S3.AccessKey = "" }},
	{"backups.s3.access_key", func(c *Config) { c.Backups.S3.AccessKey = "a b" }},
	{"backups.s3.secret_key", func(c *Config) { c.Backups.S3 = bucket("https://s3.example"); c.Backups.S3.SecretKey = "" }},
	{"backups.s3.secret_key", func(c *Config) { c.Backups.S3.SecretKey = "a\nb" }},
	{"log.level", func(c *Config) { c.Log.Level = "trace" }},
	{"log.format", func(c *Config) { c.Log.Format = "" }},
}

func TestValidateReportsEachError(t *testing.T) {
	for i, f := range faults {
		t.Run(fmt.Sprint(i, f.key), func(t *testing.T) {
			c := valid()
			f.change(&c)
			got := c.Validate()
			require.Len(t, got, 1, "%v", got)
			require.Equal(t, f.key, got[0].Key)
		})
	}
}

func TestValidateReportsAllErrors(t *testing.T) {
	got := Config{}.Validate()
	require.Greater(t, len(got), 15)
	require.ErrorContains(t, got.Err(), "; log.format: must be one of")
}

func TestDisabledAuthorizationNeedsLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "127.8.8.8", "::1", "localhost", "::ffff:127.0.0.1"} {
		c := valid()
		c.Authorization.Enabled, c.Server.Host = false, host
		require.Empty(t, c.Validate(), host)
	}
	c := valid()
	c.Authorization.Enabled, c.Authorization.AllowInsecure, c.Authorization.Token = false, true, ""
	require.Empty(t, c.Validate())
}

func TestConfigHidesSecrets(t *testing.T) {
	c := valid()
	c.Remote.Token = "panel-secret"
	c.Docker.Registries = map[string]Registry{"ghcr.io": {Username: "u", Password: "pass-word"}}
	c.Backups.S3 = bucket("https://s3.example")
	require.Empty(t, c.Validate())
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "config", c, "shown", fmt.Sprintf("%v %+v %#v", c, c.Reveal("1.2.3"), c))
	masked, err := json.Marshal(c)
	require.NoError(t, err)
	for _, secret := range []string{testToken, "panel-secret", "pass-word", "bucket-secret"} {
		require.NotContains(t, logged.String()+string(masked), secret)
	}
	shown, err := json.Marshal(c.Reveal("1.2.3"))
	require.NoError(t, err)
	require.JSONEq(t, `{"version":"1.2.3","server":{"host":"0.0.0.0","port":8070},
		"authorization":{"enabled":true,"token":"`+testToken+`"},
		"remote":{"enabled":false,"url":"","token":"panel-secret"}}`, string(shown))
}
