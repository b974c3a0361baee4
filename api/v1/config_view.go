package v1

import "encoding/json"

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
