package cli

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

func newConfigCommand(l *config.Loader) *cobra.Command {
	return withSubcommands(&cobra.Command{Use: "config", Short: "Write, check and show the configuration",
		Example: "  berth config init\n  berth config check && systemctl reload berth"},
		newConfigInit(l), newConfigCheck(l), newConfigShow(l), newConfigCurl(l))
}

func newConfigInit(l *config.Loader) *cobra.Command {
	var force bool
	cmd := withoutNames(&cobra.Command{
		Use:   "init [path]",
		Short: "Write a commented configuration with a fresh token",
		Long: "Write a commented configuration with a fresh token, mode 0600. An existing file is never overwritten:\n" +
			"with --force it is renamed to <path>.bak.",
		Example: "  berth config init\n  berth config init --force ~/berth.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := l.Path()
			if len(args) == 1 {
				path = args[0]
			}
			write := config.Write
			if force {
				write = config.Renew
			}
			err := write(path, l.DataPath())
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists: it is not overwritten (--force keeps it as %s.bak)", path, path)
			}
			if err != nil {
				return err
			}
			return answer(cmd, map[string]string{"path": path}, "wrote "+path)
		},
	})
	cmd.Flags().BoolVar(&force, "force", false, "write a new file and keep the old one as <path>.bak")
	return cmd
}

// report is the result of `berth config check`.
type report struct {
	Path     string         `json:"path"`
	Valid    bool           `json:"valid"`
	Faults   v1.FieldErrors `json:"faults"`
	Warnings []string       `json:"warnings"`
}

func newConfigCheck(l *config.Loader) *cobra.Command {
	return withOverrides(l, withoutNames(&cobra.Command{
		Use:   "check [path]",
		Short: "Report every error in the configuration",
		Long: "Report every error and warning in the configuration: the file, overridden by the environment, overridden\n" +
			"by the flags. The command fails if there is an error.",
		Example: "  berth config check\n  berth config check new.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				l.File = args[0]
			}
			got, err := l.Load()
			r := report{Path: l.Path(), Valid: err == nil, Faults: v1.FieldErrors{}, Warnings: append([]string{}, got.Warnings...)}
			if err != nil && !errors.As(err, &r.Faults) {
				r.Faults = v1.FieldErrors{{Message: err.Error()}}
			}
			if err := answer(cmd, r, r.text()); err != nil || r.Valid {
				return err
			}
			return ErrReported
		},
	}))
}

// text returns the report with one line for each error and warning.
func (r report) text() string {
	text := ""
	for _, f := range r.Faults {
		text += "fault: " + f.String() + "\n"
	}
	for _, w := range r.Warnings {
		text += "warning: " + w + "\n"
	}
	if r.Valid {
		return text + r.Path + " is valid"
	}
	if len(r.Faults) == 1 {
		return text + r.Path + " has 1 fault"
	}
	return text + fmt.Sprintf("%s has %d faults", r.Path, len(r.Faults))
}

// answer prints data as JSON or YAML if -o requests it, and text otherwise.
func answer(cmd *cobra.Command, data any, text string) error {
	if isText(cmd) {
		_, err := io.WriteString(cmd.OutOrStdout(), text+"\n")
		return err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return printRaw(cmd, raw)
}

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
