package cli

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

func newConfigShow(l *config.Loader) *cobra.Command {
	return withOverrides(l, withoutNames(&cobra.Command{
		Use:   "show [key]...",
		Short: "Print the effective configuration of file, environment and flags, without its secrets",
		Long: "Print the configuration that `berth serve` would run with: the file, overridden by the environment,\n" +
			"overridden by the flags. Secrets are shown as ***. With keys, print only their values, one per line,\n" +
			"or with -o json one object.",
		Example: "  berth config show\n  berth config show storage.data_path server.port",
		RunE: func(cmd *cobra.Command, names []string) error {
			got, err := l.Load()
			if err != nil {
				return l.WithPath(err)
			}
			if len(names) > 0 {
				return showKeys(cmd, &got.Config, names)
			}
			raw, err := json.Marshal(got.Config)
			if err != nil {
				return err
			}
			return show(cmd, raw, nil, func(t *table) {
				for key := range config.Keys(&got.Config) {
					t.row(key.Name, key.Text())
				}
			})
		},
	}))
}

func showKeys(cmd *cobra.Command, c *v1.Config, names []string) error {
	all, values, text := map[string]config.Key{}, map[string]any{}, ""
	for key := range config.Keys(c) {
		all[key.Name] = key
	}
	for _, name := range names {
		key, known := all[name]
		if !known {
			return fmt.Errorf("%s is not a key of the configuration: `berth config show` lists them", name)
		}
		values[name] = key.Value() // secrets hide themselves
		text += key.Text() + "\n"
	}
	return answer(cmd, values, strings.TrimSuffix(text, "\n"))
}

func newConfigCurl(l *config.Loader) *cobra.Command {
	return withoutNames(&cobra.Command{
		Use:   "curl",
		Short: "Print options for curl -K: the token and the vendor header",
		Long: "Print options for curl -K: the token, the vendor header, and that curl fails on an error status. So the\n" +
			"token appears neither in a command line nor in the shell's history. With server.tls, curl accepts the\n" +
			"daemon's own certificate and no other, whatever its name and issuer.",
		Example: "  curl -K <(berth config curl) http://127.0.0.1:8070/containers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := connector{loader: l}
			d, err := c.connectHost()
			if err != nil {
				return err
			}
			out := "silent\nshow-error\nfail-with-body\n"
			if d.tls != nil {
				out += pin(l)
			}
			for name, values := range d.Header() {
				out += fmt.Sprintf("header = %q\n", name+": "+values[0])
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), out)
			return err
		},
	})
}

// pin returns the options that make curl accept only the configured certificate.
// Its name is not that of the loopback address, and often it is self-signed.
func pin(l *config.Loader) string {
	got, err := l.Load()
	if err != nil || got.Certificate == nil || got.Certificate.Leaf == nil {
		return ""
	}
	sum := sha256.Sum256(got.Certificate.Leaf.RawSubjectPublicKeyInfo)
	return "insecure\npinnedpubkey = \"sha256//" + base64.StdEncoding.EncodeToString(sum[:]) + "\"\n"
}
