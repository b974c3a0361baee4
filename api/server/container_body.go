package server

import (
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
)

// containerBody is the body of a request that creates or applies a container. The
// read-only fields of a response are accepted and ignored, so that a client can
// send a container back as it received it.
type containerBody struct {
	InternalID     string            `json:"internal_id"`
	Image          string            `json:"image"`
	PullPolicy     v1.PullPolicy     `json:"pull_policy"`
	VolumeID       string            `json:"volume_id"`
	StartupCommand string            `json:"startup_command"`
	StartPattern   string            `json:"start_pattern"`
	StartTimeout   v1.Duration       `json:"start_timeout"`
	InstallScript  *string           `json:"install_script"`
	InstallImage   string            `json:"install_image"`
	InstallTimeout v1.Duration       `json:"install_timeout"`
	InstallMount   string            `json:"install_mount"`
	InstallShell   string            `json:"install_entrypoint"`
	Ports          []bindingBody     `json:"ports"`
	Limits         v1.Limits         `json:"limits"`
	Env            map[string]string `json:"env"`
	Cpuset         string            `json:"cpuset"`
	User           string            `json:"user"`
	Workdir        string            `json:"workdir"`
	Hostname       string            `json:"hostname"`
	Timezone       string            `json:"timezone"`
	ReadOnlyRoot   *bool             `json:"read_only_root"`
	TTY            *bool             `json:"tty"`
	Labels         map[string]string `json:"labels"`
	Mounts         []v1.Mount        `json:"mounts"`
	Stop           v1.Stop           `json:"stop"`
	RestartPolicy  v1.RestartPolicy  `json:"restart_policy"`
	RegistryAuth   string            `json:"registry_auth"`
	Power          v1.Power          `json:"power"`
	ConfigFiles    []configFileBody  `json:"config_files"`

	UID                edge.Ignored `json:"uid"`
	ContainerID        edge.Ignored `json:"container_id"`
	InstallState       edge.Ignored `json:"install_state"`
	State              edge.Ignored `json:"state"`
	StateSince         edge.Ignored `json:"state_since"`
	Deadline           edge.Ignored `json:"deadline"`
	Mount              edge.Ignored `json:"mount"`
	CreatedAt          edge.Ignored `json:"created_at"`
	UpdatedAt          edge.Ignored `json:"updated_at"`
	Generation         edge.Ignored `json:"generation"`
	ObservedGeneration edge.Ignored `json:"observed_generation"`
	ResourceVersion    edge.Ignored `json:"resource_version"`
	Conditions         edge.Ignored `json:"conditions"`
	ExitCode           edge.Ignored `json:"exit_code"`
	OOMKilled          edge.Ignored `json:"oom_killed"`
	RestartCount       edge.Ignored `json:"restart_count"`
	NextRetryAt        edge.Ignored `json:"next_retry_at"`
	StartedAt          edge.Ignored `json:"started_at"`
	Message            edge.Ignored `json:"message"`
}

// bindingBody is a port binding.
type bindingBody struct {
	IP            string `json:"ip" wire:"required"`
	Port          int    `json:"port" wire:"required"`
	Protocol      string `json:"protocol" wire:"required"`
	ContainerPort int    `json:"container_port"`

	// Read-only fields of a pool entry, accepted and ignored.
	InUse     edge.Ignored `json:"in_use"`
	Container edge.Ignored `json:"container"`
	Firewall  edge.Ignored `json:"firewall"`
}

func bindings(list []bindingBody) []v1.Port {
	ports := make([]v1.Port, len(list))
	for i, p := range list {
		ports[i] = v1.Port{IP: p.IP, Port: p.Port, Protocol: p.Protocol, ContainerPort: p.ContainerPort}
	}
	return ports
}

// configFileBody is a configuration file.
type configFileBody struct {
	Path   string            `json:"path" wire:"required"`
	Format string            `json:"format" wire:"required"`
	Set    map[string]string `json:"set" wire:"required"`
}

func configFiles(list []configFileBody) []v1.ConfigFile {
	files := make([]v1.ConfigFile, len(list))
	for i, f := range list {
		files[i] = v1.ConfigFile(f)
	}
	return files
}

// request converts the body to a request for package intent. The policy has the defaults.
func (b containerBody) request(p intent.Policy) intent.ApplyRequest {
	spec := v1.ContainerSpec{
		Image: b.Image, PullPolicy: b.PullPolicy, VolumeID: b.VolumeID,
		StartupCommand: b.StartupCommand, StartPattern: b.StartPattern, StartTimeout: b.StartTimeout,
		InstallImage: b.InstallImage, InstallTimeout: b.InstallTimeout, InstallMount: b.InstallMount, InstallEntrypoint: b.InstallShell,
		Ports: bindings(b.Ports), Limits: b.Limits, Env: b.Env,
		Cpuset: b.Cpuset, User: b.User, Workdir: b.Workdir, Hostname: b.Hostname, TTY: b.TTY == nil || *b.TTY,
		Timezone: b.Timezone, ReadOnlyRoot: p.ReadOnlyRoot,
		Labels: b.Labels, Mounts: b.Mounts, Stop: b.Stop, RestartPolicy: b.RestartPolicy,
		RegistryAuth: b.RegistryAuth, Power: b.Power, ConfigFiles: configFiles(b.ConfigFiles),
	}
	if b.ReadOnlyRoot != nil {
		spec.ReadOnlyRoot = *b.ReadOnlyRoot
	}
	if b.InstallScript != nil {
		spec.InstallScript = *b.InstallScript
	}
	return intent.ApplyRequest{Spec: spec, KeepScript: b.InstallScript == nil}
}
