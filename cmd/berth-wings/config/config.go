package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	v1 "berth/api/v1"
)

// maxFile bounds the file and the panel's answer with it, in bytes.
const maxFile = 1 << 20

// Config is the file of a node, as far as the bridge uses it.
type Config struct {
	Debug   bool      `json:"debug"`
	AppName string    `json:"app_name"` // in the daemon's lines of consoles
	UUID    string    `json:"uuid"`
	TokenID string    `json:"token_id"` // names the node to the panel
	Token   v1.Secret `json:"token"`    // shared with the panel; the key of every JWT
	Remote  string    `json:"remote"`   // base address of the panel, and the origin of its pages

	API         API         `json:"api"`
	System      System      `json:"system"`
	Docker      Docker      `json:"docker"`
	RemoteQuery RemoteQuery `json:"remote_query"`

	AllowedMounts           []string `json:"allowed_mounts"`  // sources of mounts must begin with one of them
	AllowedOrigins          []string `json:"allowed_origins"` // beside Remote; * for any
	CORSPrivateNetwork      bool     `json:"allow_cors_private_network"`
	IgnorePanelConfigUpdate bool     `json:"ignore_panel_config_updates"`
}

// API is the listener for the panel and for browsers.
type API struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	SSL  struct {
		Enabled bool   `json:"enabled"`
		Cert    string `json:"cert"`
		Key     string `json:"key"`
	} `json:"ssl"`
	UploadLimit           int64    `json:"upload_limit"` // MiB for each uploaded file
	DisableRemoteDownload bool     `json:"disable_remote_download"`
	TrustedProxies        []string `json:"trusted_proxies"` // whose X-Forwarded-For counts
}

// System is what a node does with its servers.
type System struct {
	RootDirectory   string `json:"root_directory"`   // the bridge keeps its own files there
	Data            string `json:"data"`             // where wings has the files of servers, for an import, and its host key
	BackupDirectory string `json:"backup_directory"` // where wings has its backups: they stay readable
	SFTP            struct {
		Address  string `json:"bind_address"`
		Port     int    `json:"bind_port"`
		ReadOnly bool   `json:"read_only"`
		KeyOnly  bool   `json:"key_only"`
	} `json:"sftp"`
	Quotas struct {
		Enabled bool `json:"enabled"`
	} `json:"quotas"` // of wings
	User struct {
		UID int `json:"uid"`
		GID int `json:"gid"`
	} `json:"user"`
	Timezone             string `json:"timezone"`
	ActivitySendInterval int    `json:"activity_send_interval"` // seconds
	ActivitySendCount    int    `json:"activity_send_count"`    // entries of one request
	WebsocketLogCount    int    `json:"websocket_log_count"`    // lines for "send logs"
	CrashDetection       struct {
		Enabled   bool `json:"enabled"`
		CleanExit bool `json:"detect_clean_exit_as_crash"`
	} `json:"crash_detection"`
	Backups struct {
		AllowedHosts []string `json:"restore_host_allowlist"` // private addresses and networks, and names, of S3
	} `json:"backups"`
}

// Docker is what the bridge uses of the engine's part.
type Docker struct {
	PidLimit int64 `json:"container_pid_limit"`
	Overhead struct {
		Override          bool               `json:"override"`
		DefaultMultiplier float64            `json:"default_multiplier"`
		Multipliers       map[string]float64 `json:"multipliers"` // by MiB
	} `json:"overhead"`
}

// RemoteQuery is how the panel is asked.
type RemoteQuery struct {
	Timeout            int               `json:"timeout"` // seconds
	BootServersPerPage int               `json:"boot_servers_per_page"`
	CustomHeaders      map[string]string `json:"custom_headers"`
}

// defaults returns the values of keys that a file lacks.
func defaults() Config {
	c := Config{AppName: "Pelican"}
	c.API.Host, c.API.Port, c.API.UploadLimit = "0.0.0.0", 8080, 100
	c.System.RootDirectory = "/var/lib/pelican"
	c.System.User.UID, c.System.User.GID = 988, 988
	c.System.SFTP.Address, c.System.SFTP.Port = "0.0.0.0", 2022
	c.System.Timezone = "UTC"
	c.System.ActivitySendInterval, c.System.ActivitySendCount = 60, 100
	c.System.WebsocketLogCount = 150
	c.System.CrashDetection.Enabled, c.System.CrashDetection.CleanExit = true, true
	c.Docker.PidLimit = 512
	c.RemoteQuery.Timeout, c.RemoteQuery.BootServersPerPage = 30, 50
	return c
}

// File is a node's file: what it says, and what the bridge makes of it.
type File struct {
	Path   string
	Config Config
	Unused []string // keys of the file that the bridge does not use, in order

	whole map[string]any // the file as it is, for Save
}

// Load reads a node's file. environ are variables, "KEY=value": WINGS_TOKEN_ID and WINGS_TOKEN come
// before the file.
func Load(path string, environ []string) (*File, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path}
	if err := yaml.Unmarshal(text, &f.whole); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := f.use(environ); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// use sets Config and Unused from the file.
func (f *File) use(environ []string) error {
	text, err := yaml.Marshal(f.whole)
	if err != nil {
		return err
	}
	c := defaults()
	if err := yaml.Unmarshal(text, &c); err != nil {
		return err
	}
	c.System.Data = cmp.Or(c.System.Data, filepath.Join(c.System.RootDirectory, "volumes"))
	c.System.BackupDirectory = cmp.Or(c.System.BackupDirectory, filepath.Join(c.System.RootDirectory, "backups"))
	env := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	token := c.Token.Reveal()
	for name, secret := range map[string]*string{"WINGS_TOKEN_ID": &c.TokenID, "WINGS_TOKEN": &token} {
		if *secret, err = reveal(*secret, name, env); err != nil {
			return err
		}
	}
	c.Token = v1.Secret(token)
	if err := c.check(); err != nil {
		return err
	}
	f.Config, f.Unused = c, unused(f.whole, reflect.TypeFor[Config](), "")
	return nil
}

// reveal returns a secret: that of the environment, or the text of the file, in which $NAME is a
// variable and file:// names a file of one line.
func reveal(text, name string, env map[string]string) (string, error) {
	if value := env[name]; value != "" {
		return value, nil
	}
	text = os.Expand(text, func(name string) string { return env[name] })
	path, is := strings.CutPrefix(text, "file://")
	if !is {
		return text, nil
	}
	content, err := readFile(path)
	line, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimSpace(line), err
}

// check returns what keeps the bridge from working with a file.
func (c Config) check() error {
	var all []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	refuse(c.TokenID == "" || c.Token == "",
		"token_id and token are required: run `berth-wings configure` as the panel's page of the node shows")
	u, err := url.Parse(c.Remote)
	refuse(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https",
		"remote: %q is not an address such as https://panel.example.com", c.Remote)
	refuse(strings.HasSuffix(c.Remote, "/"), "remote: %q must not end with a slash: browsers name the panel without one", c.Remote)
	refuse(c.API.Port < 1 || c.API.Port > 65535, "api.port: %d is not in 1 to 65535", c.API.Port)
	refuse(c.System.SFTP.Port < 1 || c.System.SFTP.Port > 65535, "system.sftp.bind_port: %d is not in 1 to 65535", c.System.SFTP.Port)
	refuse(c.API.UploadLimit < 1 || c.API.UploadLimit > 1<<20, "api.upload_limit: %d is not in 1 to 1048576 MiB", c.API.UploadLimit)
	for _, text := range c.API.TrustedProxies {
		_, err := PrefixOf(text)
		refuse(err != nil, "api.trusted_proxies: %q is neither an address nor a network", text)
	}
	_, err = time.LoadLocation(c.System.Timezone)
	refuse(err != nil, "system.timezone: %q is not a time zone", c.System.Timezone)
	for name, n := range map[string]int{"system.activity_send_interval": c.System.ActivitySendInterval,
		"remote_query.timeout": c.RemoteQuery.Timeout, "remote_query.boot_servers_per_page": c.RemoteQuery.BootServersPerPage} {
		refuse(n < 1 || n > 3600, "%s: %d is not in 1 to 3600", name, n)
	}
	refuse(c.System.ActivitySendCount < 1 || c.System.ActivitySendCount > 100,
		"system.activity_send_count: %d is not in 1 to 100", c.System.ActivitySendCount)
	refuse(c.System.WebsocketLogCount < 0 || c.System.WebsocketLogCount > 10_000,
		"system.websocket_log_count: %d is not in 0 to 10000", c.System.WebsocketLogCount)
	return errors.Join(all...)
}

// PrefixOf returns a network; an address is one of its own.
func PrefixOf(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// Trusts reports whether X-Forwarded-For of a client at an address counts.
func (a API) Trusts(client netip.Addr) bool {
	return slices.ContainsFunc(a.TrustedProxies, func(text string) bool {
		network, err := PrefixOf(text)
		return err == nil && network.Contains(client.Unmap())
	})
}

// unused returns the keys of a map that a type has no field for.
func unused(values map[string]any, of reflect.Type, prefix string) (keys []string) {
	fields := map[string]reflect.Type{}
	for i := range of.NumField() {
		fields[of.Field(i).Tag.Get("json")] = of.Field(i).Type
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field, is := fields[name]
		inner, nested := values[name].(map[string]any)
		switch {
		case !is:
			keys = append(keys, prefix+name)
		case nested && field.Kind() == reflect.Struct:
			keys = append(keys, unused(inner, field, prefix+name+".")...)
		}
	}
	return keys
}

// readFile reads a file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: is larger than %s", path, v1.Size(maxFile))
	}
	return text, err
}
