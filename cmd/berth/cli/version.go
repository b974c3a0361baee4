package cli

import (
	"encoding/json"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versions is the output of `berth version -o json`.
type versions struct {
	Client clientVersion  `json:"client"`
	Server *serverVersion `json:"server"` // nil: not asked, or the daemon did not answer
}

type clientVersion struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // with the suffix -dirty if files were changed; empty: unknown
	Go       string `json:"go"`
	Platform string `json:"platform"` // such as linux/amd64
}

type serverVersion struct {
	Version string `json:"version"`
	URL     string `json:"url"`
}

func newVersionCommand(c *connector, version string) *cobra.Command {
	var only bool
	cmd := c.command(withoutNames(&cobra.Command{
		Use:     "version",
		Short:   "Print the versions of this program and of the daemon",
		Long:    "Print the versions of this program and of the daemon. The daemon's needs a token with the scope admin.",
		Example: "  berth version\n  berth version --client -o json",
	}), nil)
	cmd.Flags().BoolVar(&only, "client", false, "only the version of this program; no daemon is needed")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions{Client: clientVersion{version, commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
		var failed error
		if !only {
			v.Server, failed = c.serverVersion(cmd)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := show(cmd, raw, nil, v.fill); err != nil {
			return err
		}
		return failed
	}
	return cmd
}

// commit returns the commit that this program was built from, as Go has recorded it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	if recorded["vcs.modified"] == "true" {
		return recorded["vcs.revision"] + "-dirty"
	}
	return recorded["vcs.revision"]
}

func (v versions) fill(t *table) {
	build := v.Client.Go + ", " + v.Client.Platform
	if v.Client.Commit != "" {
		build = "commit " + v.Client.Commit + ", " + build
	}
	t.field("client", v.Client.Version+" ("+build+")")
	if v.Server != nil {
		t.field("server", v.Server.Version+" ("+v.Server.URL+")")
	}
}

// serverVersion returns the version of the daemon.
func (c *connector) serverVersion(cmd *cobra.Command) (*serverVersion, error) {
	d, err := c.connect()
	if err != nil {
		return nil, err
	}
	var body struct {
		Version string `json:"version"`
	}
	err = d.Call(cmd.Context(), http.MethodGet, "/remote/config", nil, &body)
	if err != nil {
		return nil, d.explain(err)
	}
	return &serverVersion{body.Version, d.URL()}, nil
}
