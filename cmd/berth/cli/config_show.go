package cli

import (
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
